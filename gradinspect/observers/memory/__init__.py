"""The memory of whole training steps: measured, predicted, and under a plan. Touches torch."""
