"""A graph as one HTML page: each Python file beside the JavaScript that it feeds."""
