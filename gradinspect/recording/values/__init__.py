"""What a tensor is and holds: its description, its storage, what a node saved of it, its elements. Imports torch."""
