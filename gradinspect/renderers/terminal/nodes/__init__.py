"""The screens of one node: in the explorer, and while backward is stepped through."""
