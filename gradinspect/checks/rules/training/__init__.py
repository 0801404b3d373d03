"""Rules about the training loop: optimizers, schedulers, modes, hooks, and what holds the parameters."""
