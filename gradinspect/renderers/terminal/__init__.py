"""Screens for a terminal."""
