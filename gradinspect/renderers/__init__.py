"""Data to text or bytes. Each file is one format. No torch, no files, no printing."""
