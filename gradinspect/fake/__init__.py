"""Run a program on fake tensors: shapes, dtypes and the graph are real, values and memory are not. Touches torch."""
