"""How a training step can need less memory: what can be changed, what it costs, and the code that does it."""
