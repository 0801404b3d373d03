"""Replace functions of torch for a while, and find what the program replaced."""
