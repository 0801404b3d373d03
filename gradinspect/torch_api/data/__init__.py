"""What torch.utils.data keeps private."""
