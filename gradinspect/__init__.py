"""Inspect PyTorch's backward graph.

The names below are imported on first use: `import gradinspect` takes no time, and reading a capture file no torch.
"""

from gradinspect.methods import find_methods_with
from gradinspect.own_builtins import give_to_modules_of

TYPE_CHECKING = False  # `typing` may be a file of the user's. NOTE [Two sets of modules]

if TYPE_CHECKING:
    from typing import Any

    from gradinspect.analyses.diff.records import GraphDiff
    from gradinspect.analyses.memory.held import Memory
    from gradinspect.analyses.memory.saved_rows import SavedRow
    from gradinspect.analyses.memory.step import StepMemory
    from gradinspect.analyses.summary import Summary
    from gradinspect.api.answers import diff, memory, saved, summary, tree
    from gradinspect.api.files import load, save
    from gradinspect.api.live.checking import check
    from gradinspect.api.live.fitting import fit
    from gradinspect.api.live.recording import Recording, capture, record
    from gradinspect.api.live.reporting import report
    from gradinspect.checks.findings import Finding, Findings
    from gradinspect.checks.overview import Overview
    from gradinspect.errors import GradInspectError
    from gradinspect.graph import FoundNode, Graph

__all__ = [
    "Finding",
    "Findings",
    "FoundNode",
    "GradInspectError",
    "Graph",
    "GraphDiff",
    "Memory",
    "Overview",
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
    "report",
    "save",
    "saved",
    "summary",
    "tree",
]

_HOMES = {
    "Finding": "checks.findings",
    "Findings": "checks.findings",
    "FoundNode": "graph",
    "GradInspectError": "errors",
    "Graph": "graph",
    "GraphDiff": "analyses.diff.records",
    "Memory": "analyses.memory.held",
    "Overview": "checks.overview",
    "Recording": "api.live.recording",
    "SavedRow": "analyses.memory.saved_rows",
    "StepMemory": "analyses.memory.step",
    "Summary": "analyses.summary",
    "capture": "api.live.recording",
    "check": "api.live.checking",
    "diff": "api.answers",
    "fit": "api.live.fitting",
    "load": "api.files",
    "load_ipython_extension": "notebook",  # what %load_ext calls
    "memory": "api.answers",
    "record": "api.live.recording",
    "report": "api.live.reporting",
    "save": "api.files",
    "saved": "api.answers",
    "summary": "api.answers",
    "tree": "api.answers",
}


_METHODS = {  # NOTE [Methods of records] in `methods.py`
    "find_nodes": "analyses.selection.finding",
    "fragment_of": "api.showing",
    "line_of": "api.showing",
    "page_of": "api.showing",
    "to_networkx": "api.converting",
    "to_pandas": "api.converting",
    "to_polars": "api.converting",
}


def _imported(homes: dict[str, str], name: str) -> "Any":  # noqa: ANN401  # a class or a function
    return getattr(__import__(f"gradinspect.{homes[name]}", fromlist=[name]), name)


def __getattr__(name: str) -> object:
    """Import a public name on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'gradinspect' has no attribute '{name}'")
    return _imported(_HOMES, name)


find_methods_with(lambda name: _imported(_METHODS, name))
give_to_modules_of(__spec__)


def __dir__() -> list[str]:
    """List the public names, for completion."""
    return [*__all__]
