"""How values flow through the program, and where gradients cannot flow back."""
