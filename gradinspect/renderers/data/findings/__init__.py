"""Findings of `check` and its rules, for machines."""
