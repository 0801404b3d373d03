"""Axes that were taken for each other."""
