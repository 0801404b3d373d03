"""Stepping through one backward call, node by node. Touches torch."""
