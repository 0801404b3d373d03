"""From live torch objects to a `Graph`. The only folder that imports torch."""
