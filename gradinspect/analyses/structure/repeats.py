"""Decide which stretches of a graph are copies of one block: equal layers, the steps of an RNN.

What comes in: the items of one scope as structure numbers, and the wiring of the nodes. What goes out: repeats that do
not overlap. Two copies have nodes of equal class, shapes and argument positions, and equal inner edges; an edge that
leaves the block must do so in both.

NOTE [Positions]
A position is a node's rank among the nodes that are not AccumulateGrad. It equals the id, as AccumulateGrad nodes come
last. Items of a scope cover positions without gaps, so a copy is a range, and the next copy is the
range right after it.
"""

from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import NamedTuple

from gradinspect.analyses.structure.repeated_runs import Stretch, repeated_stretches
from gradinspect.graph import Graph, Node

MIN_NODES_SPARED = 4
MIN_NODES_OF_A_PAIR = 8
MAX_PHASES_TRIED = 4
NONE, LEAF = -1, -2  # targets that are not a position


class Wiring(NamedTuple):
    """The structure of the graph by position: a number for each node's structure, and the targets of its edges."""

    positions: dict[int, int]  # node id -> position
    structure: list[int]
    targets: list[tuple[int, ...]]
    input_nrs: list[tuple[int, ...]]


class Repeat(NamedTuple):
    """`times` copies of `period` items, starting at item `start`."""

    start: int
    period: int
    times: int


def read_wiring(graph: Graph, numbers: dict[Hashable, int]) -> Wiring:
    """Number the nodes' structures, so that equal numbers mean equal class, shapes and kinds of edges."""
    node_ids = [index for index, node in enumerate(graph.nodes) if node.kind != "accumulate_grad"]
    positions = {node_id: position for position, node_id in enumerate(node_ids)}
    wiring = Wiring(positions, [], [], [])
    for node_id in node_ids:
        node = graph.nodes[node_id]
        targets = tuple(NONE if edge is None else positions.get(edge.next_node, LEAF) for edge in node.next_edges)
        structure = (node.name, node.function, node.forward_outputs, _edge_kinds(graph, node, targets))
        wiring.structure.append(numbers.setdefault(structure, len(numbers)))
        wiring.targets.append(targets)
        wiring.input_nrs.append(tuple(0 if edge is None else edge.input_nr for edge in node.next_edges))
    return wiring


def _edge_kinds(graph: Graph, node: Node, targets: tuple[int, ...]) -> tuple[object, ...]:
    return tuple(
        graph.nodes[edge.next_node].forward_outputs if edge is not None and target == LEAF else target == NONE
        for edge, target in zip(node.next_edges, targets, strict=True)
    )


def find_repeats(structure: Sequence[int], starts: Sequence[int], wiring: Wiring) -> list[Repeat]:
    """Return the repeats that are worth folding, preferring short periods; none overlap.

    Args:
        structure: A number for each item; equal numbers mean equal contents.
        starts: The position where each item starts, and where the last one ends.
        wiring: Edges of the whole graph.
    """
    for stretches in repeated_stretches(structure):
        found: list[Repeat] = []
        free_from = 0
        for stretch in sorted(stretches):
            if stretch.start < free_from:
                continue
            for repeat in _copies_in(stretch, starts, wiring):
                found.append(repeat)
                free_from = repeat.start + repeat.period * repeat.times
        if found:
            return found
    return []


def _copies_in(stretch: Stretch, starts: Sequence[int], wiring: Wiring) -> list[Repeat]:
    """Split a stretch into copies, preferring many copies and few crossing edges."""
    start, stop, period = stretch
    if not _is_worth_folding((stop - start) // period, starts[start + period] - starts[start]):
        return []
    crossings = _crossings(stretch, starts, wiring)
    phases = sorted(
        range(start, min(start + period, stop - 2 * period + 1)),
        key=lambda item: (-((stop - item) // period), crossings[item - start], item),
    )
    best: list[Repeat] = []
    for phase in phases[:MAX_PHASES_TRIED]:
        repeats = _equal_copies(phase, (stop - phase) // period, period, starts, wiring)
        if _num_items(repeats) > _num_items(best):
            best = repeats
        if best and best[0].times == (stop - start) // period:
            break
    return best


def _num_items(repeats: list[Repeat]) -> int:
    return sum(repeat.period * repeat.times for repeat in repeats)


def _is_worth_folding(count: int, num_nodes: int) -> bool:
    if count == 2:
        return num_nodes >= MIN_NODES_OF_A_PAIR
    return count > 2 and (count - 1) * num_nodes >= MIN_NODES_SPARED


def _crossings(stretch: Stretch, starts: Sequence[int], wiring: Wiring) -> list[int]:
    """Count, for each item of one period, the edges that cross a split right before it."""
    first = starts[stretch.start]
    length = starts[stretch.start + stretch.period] - first
    changes = [0] * (2 * length + 1)
    for offset in range(length):
        for target in wiring.targets[first + offset]:
            if offset < target - first < offset + length:
                changes[offset + 1] += 1
                changes[target - first + 1] -= 1
    for place in range(2 * length):
        changes[place + 1] += changes[place]
    cuts = [starts[item] - first for item in range(stretch.start, stretch.start + stretch.period)]
    return [changes[cut] + changes[cut + length] for cut in cuts]


def _equal_copies(phase: int, count: int, period: int, starts: Sequence[int], wiring: Wiring) -> list[Repeat]:
    """Split `count` supposed copies where two neighbors differ; keep the parts worth folding."""
    begins = [starts[phase + period * copy] for copy in range(count)]
    length = starts[phase + period] - starts[phase]
    first = 0
    repeats: list[Repeat] = []
    for copy, (begin, twin) in enumerate(pairwise(begins), start=1):
        if copy == first:  # the one before it is the last of the copies before
            continue
        is_equal, can_go_on = _compare_copies(begin, twin, length, wiring)
        stop = copy + 1 if is_equal else copy
        if is_equal and can_go_on and stop < count:
            continue
        if _is_worth_folding(stop - first, length):
            repeats.append(Repeat(phase + period * first, period, stop - first))
        first = stop
    return repeats


def _compare_copies(begin: int, twin: int, length: int, wiring: Wiring) -> tuple[bool, bool]:
    """Return whether two neighboring copies are equal, and whether a third may follow.

    The outgoing edges of the last copy may lead anywhere; those of a middle copy must match its neighbor's.
    """
    can_go_on = True
    for position in range(begin, begin + length):
        targets, twin_targets = wiring.targets[position], wiring.targets[position + length]
        for place, (target, twin_target) in enumerate(zip(targets, twin_targets, strict=True)):
            if target < 0:
                continue
            is_shifted = twin_target - target == length
            if target < begin + length or twin_target < twin + length:
                input_nrs = wiring.input_nrs
                if not is_shifted or input_nrs[position][place] != input_nrs[position + length][place]:
                    return False, False
            elif not is_shifted and (target < twin + length or twin_target < twin + 2 * length):
                can_go_on = False
    return True, can_go_on
