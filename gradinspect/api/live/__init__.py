"""The library where it looks at the caller's own process: capture, record, check."""
