"""What schedulers make of the learning rate."""
