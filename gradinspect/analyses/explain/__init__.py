"""What a node computes."""
