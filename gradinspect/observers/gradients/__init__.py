"""Gradients: their norms, values and times, and what a step does to weights. Touches torch."""
