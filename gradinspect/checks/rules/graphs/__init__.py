"""Rules about the life of a graph: what changes after it was built, what is freed, what is kept."""
