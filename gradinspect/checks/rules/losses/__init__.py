"""Rules about losses: what is given to one, over which axis, and in which shape."""
