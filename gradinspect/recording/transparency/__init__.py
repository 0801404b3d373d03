"""What keeps the program from noticing us: errors, warnings, stacks, the garbage collector. Imports torch."""
