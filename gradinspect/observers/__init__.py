"""Observe the backward calls of a run: one observer per question. Touches torch."""
