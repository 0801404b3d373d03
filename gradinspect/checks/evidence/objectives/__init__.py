"""What a loss is made of: targets that have a graph, targets that are noise, and lookups without a gradient."""
