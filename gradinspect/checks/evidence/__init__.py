"""What `check` notes while a program runs. Touches torch."""
