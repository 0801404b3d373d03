"""Rules about learning rates and what schedules them."""
