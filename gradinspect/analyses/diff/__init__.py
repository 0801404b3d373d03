"""What changed between two graphs, and which of many graphs are equal."""
