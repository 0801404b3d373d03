"""Gradients of backward calls: norms, steps, times."""
