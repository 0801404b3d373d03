"""Turn data into text or bytes. No torch, no files, no printing."""
