"""What ranks exchange about their graphs."""

from collections.abc import Sequence
from typing import NamedTuple

from gradinspect.checks.findings import listed
from gradinspect.graph import Frame, Graph, Record


class RankNode(Record, frozen=True):
    """One kind of node: all those of one class that the same line made in the same module."""

    name: str
    module: str | None
    frame: Frame | None


class RankSummary(Record, frozen=True, kw_only=True):
    """What one rank is about to go backward through."""

    rank: int
    unused: tuple[str, ...]  # parameters that DistributedDataParallel waits for, and backward does not reach
    may_differ: bool = False  # find_unused_parameters says that ranks may do different things
    nodes: tuple[RankNode, ...]  # each kind once, in the order of the forward pass


class RanksOfCall(NamedTuple):
    """What each rank is about to go through in one backward call."""

    ranks: Sequence[RankSummary]
    backward: Frame | None = None


def summarize_rank(graph: Graph, rank: int, unused: Sequence[str], *, may_differ: bool = False) -> RankSummary:
    """Say what a graph is made of. The number of loop iterations is left out: sequences may differ in length."""
    kinds = dict.fromkeys(
        RankNode(
            name=node.name,
            module=None if node.module is None else graph.modules[node.module].path,
            frame=None if node.frame is None else _without_caller(graph.frames[node.frame]),
        )
        for node in reversed(graph.nodes)
        if node.leaf is None
    )
    return RankSummary(rank=rank, unused=tuple(unused), may_differ=may_differ, nodes=tuple(kinds))


def _without_caller(frame: Frame) -> Frame:
    return Frame(file=frame.file, line=frame.line, function=frame.function, code=frame.code)


def ranks_in_words(numbers: Sequence[int]) -> str:
    """Write `rank 1`, or `ranks 1 and 2`."""
    return f"rank{'s' if len(numbers) > 1 else ''} {listed(list(map(str, numbers)))}"
