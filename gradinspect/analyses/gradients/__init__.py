"""What flowed back: norms, steps, times."""
