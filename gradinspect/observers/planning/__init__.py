"""Training steps under a plan: what is changed from outside, what could be, and what real runs show. Touches torch."""
