"""A graph as one HTML page: each Python file next to the JavaScript it feeds."""
