"""What happens around backward in a training loop: optimizers, gradients between two steps, modes of modules."""
