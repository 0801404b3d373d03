"""Inspect PyTorch's backward graph.

The names below are imported on first use: `import gradinspect` takes no time, and reading a capture file no torch.
"""

from gradinspect.methods import find_methods_with

TYPE_CHECKING = False  # `typing` may be a file of the user's. NOTE [Two sets of modules]

if TYPE_CHECKING:
    from typing import Any

    from gradinspect.analyses.diff.records import GraphDiff
    from gradinspect.analyses.memory.held import Memory
    from gradinspect.analyses.memory.saved_rows import SavedRow
    from gradinspect.analyses.memory.step import StepMemory
    from gradinspect.analyses.selection.finding import FoundNode
    from gradinspect.analyses.summary import Summary
    from gradinspect.checks.findings import Finding, Findings
    from gradinspect.errors import GradInspectError
    from gradinspect.graph import Graph
    from gradinspect.library.comparing import diff
    from gradinspect.library.files import load, save
    from gradinspect.library.views import memory, saved, summary, tree
    from gradinspect.live.capturing import capture
    from gradinspect.live.checking import check
    from gradinspect.live.fitting import fit
    from gradinspect.live.recording import Recording, record

__all__ = [
    "Finding",
    "Findings",
    "FoundNode",
    "GradInspectError",
    "Graph",
    "GraphDiff",
    "Memory",
    "Recording",
    "SavedRow",
    "StepMemory",
    "Summary",
    "capture",
    "check",
    "diff",
    "fit",
    "load",
    "memory",
    "record",
    "save",
    "saved",
    "summary",
    "tree",
]

_HOMES = {
    "Finding": "checks.findings",
    "Findings": "checks.findings",
    "FoundNode": "analyses.selection.finding",
    "GradInspectError": "errors",
    "Graph": "graph",
    "GraphDiff": "analyses.diff.records",
    "Memory": "analyses.memory.held",
    "Recording": "live.recording",
    "SavedRow": "analyses.memory.saved_rows",
    "StepMemory": "analyses.memory.step",
    "Summary": "analyses.summary",
    "capture": "live.capturing",
    "check": "live.checking",
    "diff": "library.comparing",
    "fit": "live.fitting",
    "load": "library.files",
    "load_ipython_extension": "notebook",  # what %load_ext calls
    "memory": "library.views",
    "record": "live.recording",
    "save": "library.files",
    "saved": "library.views",
    "summary": "library.views",
    "tree": "library.views",
}


_METHODS = {  # NOTE [Methods of records] in `methods.py`
    "find_nodes": "analyses.selection.finding",
    "fragment_of": "library.showing",
    "line_of": "library.showing",
    "page_of": "library.showing",
    "to_networkx": "library.converting",
    "to_pandas": "library.converting",
    "to_polars": "library.converting",
}


def _imported(homes: dict[str, str], name: str) -> "Any":  # noqa: ANN401  # a class or a function
    return getattr(__import__(f"gradinspect.{homes[name]}", fromlist=[name]), name)


def __getattr__(name: str) -> object:
    """Import a public name on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'gradinspect' has no attribute '{name}'")
    return _imported(_HOMES, name)


find_methods_with(lambda name: _imported(_METHODS, name))


def __dir__() -> list[str]:
    """List the public names, for completion."""
    return [*__all__]
