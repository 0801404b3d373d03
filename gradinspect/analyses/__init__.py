"""Questions about a graph. Each file has a frozen result and the function that computes it. No torch, no I/O."""
