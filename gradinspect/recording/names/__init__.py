"""The user's names of tensors and modules. Imports torch."""
