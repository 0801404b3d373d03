"""Formats for machines: CSV, JSON, Markdown, traces."""
