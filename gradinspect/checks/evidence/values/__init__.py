"""How values flow through the program, and where gradient flow stops."""
