"""Which way values went through the program, and where gradients cannot follow."""
