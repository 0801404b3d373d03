"""Rules about what a loss adds up."""
