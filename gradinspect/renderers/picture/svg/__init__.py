"""What is done to an SVG once it is drawn."""
