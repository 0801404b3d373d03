"""The structure of a graph: folding, repeats, outline, flow, search."""
