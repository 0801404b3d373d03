"""Run the user's program as python would, and tell an observer of its backward calls. Touches torch."""
