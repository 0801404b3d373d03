"""The only package that touches torch's private names: probed, wrapped in typed functions, and patched."""
