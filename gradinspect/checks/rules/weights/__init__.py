"""Rules about the values that weights begin with."""
