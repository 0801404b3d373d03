"""In-place writes: what was written, when, and on which line."""
