"""Inspect PyTorch's backward graph.

The names below are imported on first use, so that reading a capture file needs no torch.
"""

TYPE_CHECKING = False  # `typing` may be a file of the user's. NOTE [Two sets of modules]

if TYPE_CHECKING:
    from gradinspect.errors import GradInspectError
    from gradinspect.graph import Graph
    from gradinspect.recording.capture import capture_graph
    from gradinspect.recording.recorder import Recorder
    from gradinspect.storage import read_graph

__all__ = ["GradInspectError", "Graph", "Recorder", "capture_graph", "read_graph"]

_HOMES = {
    "GradInspectError": "gradinspect.errors",
    "Graph": "gradinspect.graph",
    "Recorder": "gradinspect.recording.recorder",
    "capture_graph": "gradinspect.recording.capture",
    "read_graph": "gradinspect.storage",
}


def __getattr__(name: str) -> object:
    """Import a public name on first use."""
    import importlib  # noqa: PLC0415  # only needed here

    if name not in _HOMES:
        raise AttributeError(f"module 'gradinspect' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)
