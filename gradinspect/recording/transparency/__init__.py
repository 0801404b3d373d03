"""So that the program does not notice us: errors, warnings, stacks, the garbage collector. Imports torch."""
