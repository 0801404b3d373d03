"""Conditions of a gate: `bytes>5%`, `lost-gradient`.

What comes in: what the user wrote, and a `GraphDiff`. What goes out: the sentence that says why a gate fails, if it
does.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Final

from gradinspect.analyses.diff.records import Detail, GraphDiff, Pair
from gradinspect.errors import GradInspectError
from gradinspect.graph import Record
from gradinspect.units import brief, format_change, format_count, parse_bytes

FIGURES: Final[Mapping[str, Callable[[GraphDiff], Pair]]] = {
    "bytes": lambda diff: diff.held_bytes,
    "weights": lambda diff: diff.weight_bytes,
    "nodes": lambda diff: diff.nodes,
    "edges": lambda diff: diff.edges,
    "leaves": lambda diff: diff.leaves,
}
IN_BYTES: Final = frozenset({"bytes", "weights"})
LOST: Final = frozenset({"lost", "frozen"})
EVENTS: Final = ("lost-gradient", "added", "removed", "changed", "operator", "dtype", "shape", "moved", "values")
_FORM: Final = re.compile(r"\s*(?P<figure>\w+)\s*>\s*(?P<limit>\d[^%]*?)\s*(?P<percent>%)?\s*")
HINT: Final = f"Write 'bytes>5%', 'nodes>10', or one of: {', '.join(EVENTS)}."


class Gate(Record, frozen=True):
    """One condition."""

    text: str  # as the user wrote it
    figure: str | None = None  # of FIGURES; None: an event
    limit: float = 0.0  # by how much it may grow: a number, bytes, or a share
    is_share: bool = False


def parse_gate(text: str) -> Gate:
    """Read a condition.

    Raises:
        GradInspectError: It cannot be read.
    """
    if text in EVENTS:
        return Gate(text)
    found = _FORM.fullmatch(text)
    if found is None or found["figure"] not in FIGURES:
        raise GradInspectError(f"'--fail-on {brief(text)}' is not a known condition.", HINT)
    return Gate(text, found["figure"], _limit(text, found), is_share=found["percent"] is not None)


def _limit(text: str, found: re.Match[str]) -> float:
    try:
        if found["percent"]:
            return _finite(found["limit"]) / 100
        return parse_bytes(found["limit"]) if found["figure"] in IN_BYTES else _finite(found["limit"])
    except (ValueError, GradInspectError):
        raise GradInspectError(f"'--fail-on {brief(text)}' has no valid number.", HINT) from None


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError
    return number


def failure(gate: Gate, diff: GraphDiff) -> str | None:
    """Say why a gate fails; None if it does not."""
    return _event(gate.text, diff) if gate.figure is None else _growth(gate, FIGURES[gate.figure](diff))


def _growth(gate: Gate, pair: Pair) -> str | None:
    limit = gate.limit * pair.before if gate.is_share else gate.limit
    if pair.change <= limit:
        return None
    change = format_change(pair.change) if gate.figure in IN_BYTES else f"{pair.change:+,}"
    share = f" ({pair.change / pair.before:+.1%})" if pair.before else ""
    return f"{gate.text}: {change}{share}"


def _event(name: str, diff: GraphDiff) -> str | None:
    counts = {
        "added": len(diff.added),
        "removed": len(diff.removed),
        "changed": len(diff.changed),
        "moved": sum(change.kind == "moved" for change in diff.module_changes),
    }
    if name == "lost-gradient":
        lost = [change.name for change in diff.leaf_changes if change.kind in LOST]
        more = f" and {len(lost) - 3:,} more" if len(lost) > 3 else ""
        return f"{name}: {', '.join(lost[:3])}{more}" if lost else None
    if name == "values":
        differs = diff.values is not None and not diff.values.is_empty
        return f"{name}: they differ" if differs else None
    if name in counts:
        noun = "module" if name == "moved" else "node"
        return f"{name}: {format_count(counts[name], noun)}" if counts[name] else None
    count = sum(row.count for row in diff.rows if _has_field(row.details, name))
    return f"{name}: {format_count(count, 'node')}" if count else None


def _has_field(details: Sequence[Detail], name: str) -> bool:
    return any(detail.field == name for detail in details)
