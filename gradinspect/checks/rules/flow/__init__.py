"""Rules about gradient flow: tensors and parameters that no gradient reaches, and the line that stops it."""
