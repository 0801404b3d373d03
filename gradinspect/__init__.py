"""See what a PyTorch backward graph holds."""
