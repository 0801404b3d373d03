"""Run the user's program for a verb, in this process or in others."""
