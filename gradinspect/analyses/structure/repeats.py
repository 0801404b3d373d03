"""Decide which stretches of a graph are copies of one block: equal layers, the steps of an RNN.

What comes in: the items of one scope as structure numbers, and the wiring of the nodes. What goes out: repeats that do
not overlap. Two copies have nodes of equal class, leaves and argument positions, and equal inner edges; an edge that
leaves the block must do so in both.

NOTE [Sizes of copies]
Sizes of results do not tell blocks apart: an expert gets as many rows as are routed to it, and each call of a decoder
with a cache attends to one token more. Those of parameters do where nodes and single layers are compared: one with
twice the channels is another one. Of blocks of modules they do not, on no screen: NOTE [One fold] in `name_folding`.

NOTE [Where a chain begins]
The block that ran first gets what needs no gradient: its edges lead nowhere where those of the others lead into the
next copy. It is a copy all the same. A sum that begins at 0 has its first term in the place of the sum so far.

NOTE [Positions]
A position is a node's rank among the nodes that are not AccumulateGrad. It equals the id, as AccumulateGrad nodes come
last. Items of a scope cover positions without gaps, so a copy is a range, and the next copy is the
range right after it.
"""

from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec.structs import replace

from gradinspect.analyses.structure.repeated_runs import Stretch, repeated_stretches
from gradinspect.graph import Edge, Graph, Node, TensorInfo

MIN_NODES_SPARED = 4
MAX_PHASES_TRIED = 4
NONE, LEAF = -1, -2  # steps to what is not a position
ADD = "AddBackward0"
INNER = 0  # kind of an edge to a position


class Looks(NamedTuple):
    """What something in the graph looks like: a number each, equal for what is equal."""

    structure: int
    begins: int  # equal also for those that differ in edges to nothing: NOTE [Where a chain begins]
    unsized: int  # as `structure`, whatever the sizes of parameters: NOTE [Sizes of copies]
    unsized_begins: int


class Wiring(NamedTuple):
    """The structure of the graph by position: what each node looks like, and where its edges lead.

    Nodes whose edges lead equally far share one tuple of steps, and so do those with equal input numbers.
    """

    positions: dict[int, int]  # node id -> position
    looks: list[Looks]  # of each node
    steps: list[tuple[int, ...]]  # for each edge how many positions further it leads, or NONE, or LEAF
    input_nrs: list[tuple[int, ...]]

    @property
    def structure(self) -> list[int]:
        """What tells nodes of other structure apart."""
        return [look.structure for look in self.looks]

    @property
    def begins(self) -> list[int]:
        """The same, equal also for NOTE [Where a chain begins]."""
        return [look.begins for look in self.looks]


class Repeat(NamedTuple):
    """`times` copies of `period` items, starting at item `start`."""

    start: int
    period: int
    times: int


def read_wiring(graph: Graph, numbers: dict[Hashable, int]) -> Wiring:
    """Number the nodes' structures: equal class, dtypes, dimensions and kinds of edges."""
    nodes = graph.nodes
    node_ids = [index for index, node in enumerate(nodes) if node.kind != "accumulate_grad"]
    positions = {node_id: position for position, node_id in enumerate(node_ids)}
    wiring = Wiring(positions, [], [], [])
    known: dict[Hashable, Looks] = {}  # by the identity of descriptions, which are shared, and slow to hash
    shared: dict[tuple[int, ...], tuple[int, ...]] = {}
    for position, node_id in enumerate(node_ids):
        node = nodes[node_id]
        steps, kinds, input_nrs = [], [], []
        for edge in _edges(node):
            target = None if edge is None else positions.get(edge.next_node)
            if target is not None:
                steps.append(target - position)
                kinds.append(INNER)
            else:
                steps.append(NONE if edge is None else LEAF)
                kinds.append(NONE if edge is None else id(nodes[edge.next_node].forward_outputs))
            input_nrs.append(0 if edge is None else edge.input_nr)
        looks = (node.name, node.function, *map(id, node.forward_outputs), NONE, *kinds)
        found = known.get(looks)
        if found is None:
            outputs = tuple(map(_without_sizes, node.forward_outputs))
            sized = _edge_kinds(graph, node, steps)
            unsized = tuple(tuple(map(_without_sizes, kind)) if isinstance(kind, tuple) else kind for kind in sized)
            structures = (
                (node.name, node.function, outputs, kinds_of_edges)
                for kinds_of_edges in (sized, _led(sized), unsized, _led(unsized))
            )
            found = known[looks] = Looks(*(numbers.setdefault(one, len(numbers)) for one in structures))
        wiring.looks.append(found)
        wiring.steps.append(shared.setdefault(tuple(steps), tuple(steps)))
        wiring.input_nrs.append(shared.setdefault(tuple(input_nrs), tuple(input_nrs)))
    return wiring


def _edges(node: Node) -> tuple[Edge | None, ...]:
    """Return the edges, those of a sum that begins as those of one that goes on: NOTE [Where a chain begins]."""
    is_first_term = node.name == ADD and len(node.next_edges) == 2 and node.next_edges[1] is None
    return node.next_edges[::-1] if is_first_term else node.next_edges


def _without_sizes(info: TensorInfo | None) -> TensorInfo | None:
    """Leave out all sizes: NOTE [Sizes of copies]."""
    return replace(info, shape=(0,) * len(info.shape), local_shape=None) if info and info.shape else info


def _edge_kinds(graph: Graph, node: Node, steps: Sequence[int]) -> tuple[object, ...]:
    return tuple(
        graph.nodes[edge.next_node].forward_outputs if edge is not None and step == LEAF else step == NONE
        for edge, step in zip(_edges(node), steps, strict=True)
    )


def _led(kinds: Sequence[object]) -> tuple[object, ...]:
    """Take edges that lead nowhere for edges that lead somewhere."""
    return tuple(False if kind is True else kind for kind in kinds)


def find_repeats(
    structure: Sequence[int], begins: Sequence[int], starts: Sequence[int], wiring: Wiring
) -> list[Repeat]:
    """Return the repeats that are worth folding, preferring short periods; none overlap.

    Args:
        structure: A number for each item; equal numbers mean equal contents.
        begins: The same, equal also for NOTE [Where a chain begins].
        starts: The position where each item starts, and where the last one ends.
        wiring: Edges of the whole graph.
    """
    for stretches in repeated_stretches(structure):
        found: list[Repeat] = []
        free_from = 0
        for stretch in sorted(stretches):
            if stretch.start < free_from:
                continue
            for copies in _copies_in(stretch, starts, wiring):
                repeat = _with_first_of_chain(copies, begins, starts, wiring)
                found.append(repeat)
                free_from = repeat.start + repeat.period * repeat.times
        if found:
            return found
    return []


def _with_first_of_chain(repeat: Repeat, begins: Sequence[int], starts: Sequence[int], wiring: Wiring) -> Repeat:
    """Add the copy of a block of modules that ran first, if it differs in that: NOTE [Where a chain begins]."""
    start, period, times = repeat
    stop = start + period * times
    length = starts[stop] - starts[stop - period]
    if length == period or begins[stop : stop + period] != begins[stop - period : stop]:
        return repeat
    is_equal, _ = _compare_copies(starts[stop - period], starts[stop], length, wiring)
    return repeat._replace(times=times + 1) if is_equal else repeat


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
    return count > 1 and (count - 1) * num_nodes >= MIN_NODES_SPARED


def _crossings(stretch: Stretch, starts: Sequence[int], wiring: Wiring) -> list[int]:
    """Count, for each item of one period, the edges that cross a split right before it."""
    first = starts[stretch.start]
    length = starts[stretch.start + stretch.period] - first
    changes = [0] * (2 * length + 1)
    for offset in range(length):
        for step in wiring.steps[first + offset]:
            if 0 < step < length:
                changes[offset + 1] += 1
                changes[offset + step + 1] -= 1
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

    The outgoing edges of the last copy may lead anywhere; those of a middle copy must match its neighbor's. An edge
    into the last copy may lead nowhere in it: NOTE [Where a chain begins].
    """
    can_go_on = True
    all_steps, all_input_nrs = wiring.steps, wiring.input_nrs
    for position in range(begin, begin + length):
        steps, twin_steps = all_steps[position], all_steps[position + length]
        input_nrs, twin_input_nrs = all_input_nrs[position], all_input_nrs[position + length]
        if steps is twin_steps and input_nrs is twin_input_nrs:
            continue
        for place, (step, twin_step) in enumerate(zip(steps, twin_steps, strict=True)):
            target, twin_target = position + step, position + length + twin_step
            if step < 0 or (twin_step == NONE and twin <= target < twin + length):
                continue
            if target < begin + length or twin_target < twin + length:
                if step != twin_step or input_nrs[place] != twin_input_nrs[place]:
                    return False, False
            elif step != twin_step and (target < twin + length or twin_target < twin + 2 * length):
                can_go_on = False
    return True, can_go_on
