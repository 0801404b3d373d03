"""The memory of whole training steps: measured and predicted. Touches torch."""
