"""Updates of parameters that are assigned to a variable and forgotten: `p = p - lr * p.grad`.

A call reads a leaf and what was made of a gradient, and no later call reads the result. What the last iteration made
may yet be read, so it does not count.
"""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gradinspect.checks.facts.value_flow import NO_LEAF, OUTSIDE, Call
from gradinspect.recording.frames import FrameTable, is_own_file
from gradinspect.recording.source_structure import forgotten_assignments

LEAST_TIMES = 2


class DroppedUpdate(NamedTuple):
    """What one line computes of a leaf and a gradient, each time for nothing."""

    frame: int
    leaf: int  # its number
    num_times: int


class Forgotten(NamedTuple):
    """A loop assigns what it computes to its own variable."""

    frame: int
    name: str
    value: str  # as the program writes it


def dropped_updates(calls: Sequence[Call]) -> Iterator[DroppedUpdate]:
    """Find the lines of which no result was ever read again, but for the last."""
    used = {read.call for call in calls for read in call.reads}
    dropped: defaultdict[tuple[int, int], list[bool]] = defaultdict(list)
    for number, leaf in _updates(calls):
        frame = calls[number].frame
        if frame is not None:
            dropped[frame, leaf].append(number not in used)
    for (frame, leaf), unused in dropped.items():
        if len(unused) >= LEAST_TIMES and all(unused):
            yield DroppedUpdate(frame, leaf, len(unused))


def forgotten(calls: Sequence[Call], frames: FrameTable) -> Iterator[Forgotten]:
    """Yield the lines that compute the variable of a loop anew for nothing."""
    counts = Counter(call.frame for call in calls if call.frame is not None)
    lines = {number: next(frames.chain(number)) for number in counts}
    for file in dict.fromkeys(code.co_filename for code, _ in lines.values() if is_own_file(code.co_filename)):
        for name, node in forgotten_assignments(file):
            value = ast.unparse(node.value)
            for number, (code, line) in lines.items():
                if code.co_filename == file and line == node.lineno and counts[number] >= LEAST_TIMES:
                    yield Forgotten(number, name, value)


def _updates(calls: Sequence[Call]) -> Iterator[tuple[int, int]]:
    """Yield the calls that read a leaf beside what was made of a gradient, with the number of the leaf."""
    of_gradient: set[int] = set()
    leaf_of: dict[int, int] = {}  # of a call that returns a leaf without its graph
    for number, call in enumerate(calls):
        if call.cause == "gradient" or any(read.call in of_gradient for read in call.reads):
            of_gradient.add(number)
        leaves = [leaf for read in call.reads if (leaf := _leaf(read.leaf, read.call, leaf_of)) != NO_LEAF]
        if call.cause in ("data", "detach") and leaves:
            leaf_of[number] = leaves[0]
        if len(leaves) == 1 and len(call.reads) > 1 and number in of_gradient and not call.is_write:
            yield number, leaves[0]


def _leaf(leaf: int, call: int, leaf_of: dict[int, int]) -> int:
    return leaf if leaf != NO_LEAF or call == OUTSIDE else leaf_of.get(call, NO_LEAF)
