"""Fills of the boxes of a picture."""
