"""`gradinspect check`: what is remembered while a program runs, and what is looked for at each backward call."""
