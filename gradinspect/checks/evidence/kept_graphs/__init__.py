"""Graphs that the program keeps: those of earlier backward calls, and those that none goes through. Touches torch."""
