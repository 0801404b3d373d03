"""Memory: what a graph holds, how it grows, what a step needs, and plans for it."""
