"""The library where it needs no torch: files, the methods of a graph, and what a graph answers."""
