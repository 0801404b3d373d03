"""What backward keeps in memory: by storage, module, line."""
