"""Which axis is which: views that were to move one, values of each example along a row, positions along the batch."""
