"""`capture`: the graph of live tensors."""

from torch import nn

from gradinspect.graph import Graph
from gradinspect.recording.capture import capture_graph


def capture(outputs: object, *, model: nn.Module | None = None) -> Graph:
    """Record the autograd graph of live tensors, such as a loss, before its backward.

    No gradient is computed, no hook runs, nothing stays patched and no tensor is kept alive. Modules and source lines
    are known only from a recording: use `record` around the forward pass, and `Recording.capture`.

    Args:
        outputs: A tensor, or a tuple, list, dict, dataclass or ModelOutput that contains some.
        model: Names the parameters, if no variable of the caller holds the model.

    Returns:
        The record of every node that backward would run, with the bytes that each holds.

    Raises:
        GradInspectError: No tensor in `outputs` has a graph.
    """
    return capture_graph(outputs, model=model)
