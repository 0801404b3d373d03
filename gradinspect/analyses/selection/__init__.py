"""Which rows of a table are shown, and in which order."""
