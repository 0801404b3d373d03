"""Memory held for backward, by storage, module and line."""
