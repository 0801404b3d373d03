"""The only package that uses torch's private names: probed, wrapped in typed functions, and patched."""
