"""Which of many captures are equal: the ranks of a job, the commits of a week.

What comes in: captures, one after the other. What goes out: groups of equal ones, the largest first, and how each of
the others differs from the first. Only one capture of each kind is kept in memory.
"""

import hashlib
import re
from collections.abc import Callable, Sequence
from itertools import takewhile

import msgspec
from msgspec.structs import replace

from gradinspect.analyses.diff.comparison import diff_graphs
from gradinspect.analyses.diff.records import GraphDiff
from gradinspect.graph import Graph, Record
from gradinspect.units import format_ranges

_NUMBER = re.compile(r"[0-9]{1,18}")


class Group(Record, frozen=True):
    """Captures that are equal."""

    members: tuple[int, ...]  # their positions on the command line
    graph: Graph  # of the first of them
    diff: GraphDiff | None = None  # from the first group to this one; None for the first


class Grouper:
    """Takes captures one by one."""

    def __init__(self, compare: Callable[[Graph, Graph], GraphDiff] = diff_graphs) -> None:
        """Start without captures.

        Args:
            compare: Compares two of them.
        """
        self._compare = compare
        self._kinds: dict[bytes, tuple[Graph, list[int]]] = {}
        self._count = 0

    def add(self, graph: Graph) -> bytes:
        """Take the next capture, and return what it has in common with equal ones."""
        kind = _digest(graph)
        self._kinds.setdefault(kind, (graph, []))
        self.add_equal(kind)
        return kind

    def add_equal(self, kind: bytes) -> None:
        """Take the next capture, which is known to equal an earlier one."""
        self._kinds[kind][1].append(self._count)
        self._count += 1

    def groups(self) -> tuple[Group, ...]:
        """Return the groups: the largest, then the others in order of their first members."""
        kinds = sorted(self._kinds.values(), key=lambda kind: (-len(kind[1]), kind[1]))
        reference, members = kinds[0]
        equal = list(members)
        others: list[Group] = []
        for graph, positions in sorted(kinds[1:], key=lambda kind: kind[1]):
            diff = self._compare(reference, graph)
            if diff.is_empty:
                equal += positions
            else:
                _put(others, Group(tuple(positions), graph, diff))
        return Group(tuple(sorted(equal)), reference), *others


def _put(groups: list[Group], new: Group) -> None:
    """Put a group with those that differ from the first one in the same way."""
    for place, group in enumerate(groups):
        if group.diff == new.diff:
            groups[place] = replace(group, members=tuple(sorted((*group.members, *new.members))))
            return
    groups.append(new)


def _digest(graph: Graph) -> bytes:
    """Return a short text that is equal for equal graphs, whatever they are called."""
    parts = (
        graph.nodes,
        graph.roots,
        graph.storages,
        graph.modules,
        [frame.code for frame in graph.frames],
        graph.values,
    )
    return hashlib.sha256(msgspec.json.encode(parts)).digest()


def name_members(labels: Sequence[str], members: Sequence[int]) -> str:
    """Name some of many files: `ranks 0-5, 7`, if they differ by a number, else by their names."""
    numbers = _numbers(labels)
    if numbers is None:
        return ", ".join(labels[member] for member in members)
    return f"{'rank' if len(members) == 1 else 'ranks'} {format_ranges(numbers[member] for member in members)}"


def are_ranks(labels: Sequence[str]) -> bool:
    """Return whether files are of the ranks of a job: their names differ by a number."""
    return _numbers(labels) is not None


def _numbers(labels: Sequence[str]) -> list[int] | None:
    """Return the number in which the names of files differ; None if they differ in anything else."""
    start = _common_start(labels).rstrip("0123456789")
    end = _common_start([label[::-1] for label in labels])[::-1].lstrip("0123456789")
    middles = [label[len(start) : len(label) - len(end)] for label in labels]
    if "rank" not in start.lower() and not start.endswith((".", "-", "_", "/")):
        return None
    if not all(_NUMBER.fullmatch(middle) for middle in middles) or len(set(middles)) < len(labels):
        return None
    return [int(middle) for middle in middles]


def _common_start(texts: Sequence[str]) -> str:
    columns = takewhile(lambda letters: len(set(letters)) == 1, zip(*texts, strict=False))
    return "".join(letters[0] for letters in columns)
