"""What is judged: each file turns facts into findings. No torch, no I/O."""
