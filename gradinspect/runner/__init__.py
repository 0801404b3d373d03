"""Run the user's program as Python would, and report its backward calls to an observer. Touches torch."""
