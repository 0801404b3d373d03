"""Gradients of one backward call and of several, and the time of each node."""
