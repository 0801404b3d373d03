"""Pictures: SVG, PNG, PDF, DOT."""
