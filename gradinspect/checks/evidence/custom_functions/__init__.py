"""Custom autograd.Functions, checked against finite differences."""
