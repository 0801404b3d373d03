"""Screens of a terminal."""
