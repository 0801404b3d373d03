"""What a verb prints, writes and opens."""
