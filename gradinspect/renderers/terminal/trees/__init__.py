"""The tree of a graph, from the loss or from the inputs."""
