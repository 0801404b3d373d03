"""Targets that do not belong to what they are compared with."""
