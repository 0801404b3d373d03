"""What calls a callable as a program would: its inputs, its device, its loss. Touches torch."""
