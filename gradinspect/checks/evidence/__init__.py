"""What `check` records while a program runs. Touches torch."""
