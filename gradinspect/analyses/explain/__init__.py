"""Explanations of what a node computes."""
