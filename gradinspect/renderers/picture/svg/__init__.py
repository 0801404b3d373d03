"""Post-processing of SVG."""
