"""The explorer: a full-screen terminal interface. The only package that imports textual."""
