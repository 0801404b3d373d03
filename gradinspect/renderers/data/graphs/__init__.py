"""Formats for whole graphs, which other programs read."""
