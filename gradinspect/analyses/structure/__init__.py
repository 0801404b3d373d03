"""The shape of a graph: folding, repeats, outline, flow, search."""
