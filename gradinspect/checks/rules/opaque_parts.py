"""The parts of a graph that no check looks into, for whoever reads that nothing was found."""

from collections.abc import Iterable, Iterator

from gradinspect.checks.findings import line_of
from gradinspect.graph import Graph, Node, frame_of
from gradinspect.units import format_count

_REENTRANT = "torch.utils.checkpoint.CheckpointFunction"
MAX_LINES = 3


def opaque_parts(graph: Graph) -> Iterator[tuple[str, str]]:
    """Yield what is not looked into, and its line."""
    for node in graph.nodes:
        what = _what(node)
        if what is not None:
            yield what, line_of(frame_of(graph, node))


def opaque_notes(parts: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Say what was not looked into, each kind of part once.

    Args:
        parts: Those of each graph that was looked at.
    """
    lines: dict[str, list[str]] = {}
    for what, line in dict.fromkeys(parts):
        lines.setdefault(what, []).append(line)
    return tuple(f"Not looked into: {what}, at {_listed(places)}." for what, places in lines.items())


def _what(node: Node) -> str | None:
    if node.kind == "compiled":
        return "what torch.compile has made of a function"
    if node.kind == "opaque":
        return f"{node.name}, a node in C++ that tells nothing of itself"
    if node.function == _REENTRANT:
        return "the graph that a reentrant checkpoint makes while backward runs"
    return None


def _listed(places: list[str]) -> str:
    more = len(places) - MAX_LINES
    shown = ", ".join(places[:MAX_LINES])
    return f"{shown} and {format_count(more, 'other line')}" if more > 0 else shown
