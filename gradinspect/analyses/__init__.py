"""Questions about a graph. Each file: one frozen result and the function from `Graph` to it. No torch, no I/O."""
