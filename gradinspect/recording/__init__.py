"""From live torch objects to a `Graph`: walk, read, name. Imports torch."""
