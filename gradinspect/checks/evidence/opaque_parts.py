"""The parts of a graph that no rule checks, for the note on a report."""

from collections.abc import Iterable, Iterator

from gradinspect.checks.findings import line_of
from gradinspect.graph import Frame, Graph, Node, frame_of
from gradinspect.units import format_count

_REENTRANT = "torch.utils.checkpoint.CheckpointFunction"
_COMPILED = "code under torch.compile"
_REMEDIES = {_COMPILED: " --eager runs it as it is written."}
MAX_LINES = 3


def opaque_parts(graph: Graph) -> Iterator[tuple[str, str]]:
    """Yield what is not checked, and its line."""
    for node in graph.nodes:
        what = _what(node)
        if what is not None:
            yield what, line_of(frame_of(graph, node))


def compiled_parts(lines: Iterable[Frame | None]) -> Iterator[tuple[str, str]]:
    """Yield that compiled code is not checked, for each line that called it."""
    for line in lines:
        yield _COMPILED, line_of(line)


def opaque_notes(parts: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Say what was not checked, each kind of part once.

    Args:
        parts: Those of each graph that was looked at.
    """
    lines: dict[str, list[str]] = {}
    for what, line in dict.fromkeys(parts):
        lines.setdefault(what, []).append(line)
    return tuple(
        f"Not checked: {what}, at {_listed(places)}.{_REMEDIES.get(what, '')}" for what, places in lines.items()
    )


def _what(node: Node) -> str | None:
    if node.kind == "compiled":
        return _COMPILED
    if node.kind == "opaque":
        return f"{node.name}, an unknown C++ node"
    if node.function == _REENTRANT:
        return "the graph that a reentrant checkpoint builds during backward"
    return None


def _listed(places: list[str]) -> str:
    more = len(places) - MAX_LINES
    shown = ", ".join(places[:MAX_LINES])
    return f"{shown} and {format_count(more, 'other line')}" if more > 0 else shown
