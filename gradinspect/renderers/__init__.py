"""Data to text or bytes. No torch, no files, no printing."""
