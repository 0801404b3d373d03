"""The path from a root to a node, with what repeats in it counted: the steps of an RNN, equal layers.

What comes in: a graph and the nodes of a path in order. What goes out: the same nodes, or how many were left out.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from gradinspect.analyses.structure.name_folding import pattern_of
from gradinspect.analyses.structure.repeated_runs import Stretch, repeated_stretches
from gradinspect.graph import Graph

SHORT: Final = 24  # nodes: such a path fits a screen, and is read as it is
MIN_TIMES: Final = 3  # the first one is shown, and folding a single one after it would save no row


def fold_path(graph: Graph, path: Sequence[int], selected: int) -> Iterator[int | Sequence[int]]:
    """Yield nodes, and stretches of those like the ones before them; the part with the selected node stays.

    Args:
        graph: The graph.
        path: From the root.
        selected: A node of it.
    """
    begin = 0
    for stretch in _stretches(graph, path) if len(path) > SHORT else ():
        shown = range(stretch.start + stretch.period, stretch.stop)
        here = path.index(selected)
        for start, stop in ((shown.start, min(max(here, shown.start), shown.stop)), (here + 1, shown.stop)):
            if stop - start > stretch.period and start >= begin:
                yield from path[begin:start]
                yield path[start:stop]
                begin = stop
    yield from path[begin:]


def _stretches(graph: Graph, path: Sequence[int]) -> list[Stretch]:
    """Find what repeats three times or more; of the periods, the one that counts most nodes."""
    numbers: dict[object, int] = {}
    values = [numbers.setdefault(_look(graph, node_id), len(numbers)) for node_id in path]
    best: list[Stretch] = []
    for found in repeated_stretches(values):
        long = [one for one in found if one.stop - one.start >= MIN_TIMES * one.period]
        apart = _apart(long)
        if sum(one.stop - one.start for one in apart) > sum(one.stop - one.start for one in best):
            best = apart
    return best


def _apart(found: Sequence[Stretch]) -> list[Stretch]:
    """Leave out those that overlap an earlier one."""
    kept: list[Stretch] = []
    for one in sorted(found):
        if not kept or one.start >= kept[-1].stop:
            kept.append(one)
    return kept


def _look(graph: Graph, node_id: int) -> object:
    node = graph.nodes[node_id]
    path = "" if node.module is None else pattern_of(graph.modules[node.module].path)
    return node.name, node.frame, path
