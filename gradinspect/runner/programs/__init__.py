"""Programs of every kind: scripts, modules, notebooks, and what Python gives them. Touches torch."""
