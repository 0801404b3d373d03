"""What devices have and do: their memory, their captured kernels, the profiler."""
