"""Graphs: which ones are recorded, which are alive, and what holds them. Touches torch."""
