"""What the first copy of a repeated block shows for all: where copies differ, the least and the greatest.

What comes in: a graph and its folding. What goes out: the graph with ranges, and the bytes that copies hold.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final, TypeAlias

from msgspec.structs import replace

from gradinspect.analyses.structure.call_names import short_name
from gradinspect.analyses.structure.expansion import fits_unfolded
from gradinspect.analyses.structure.folding import Item, Scope, node_ids
from gradinspect.analyses.structure.name_folding import fold_name
from gradinspect.graph import Graph, ModuleCall, Node, Size, TensorInfo
from gradinspect.units import format_bytes

MAX_NAMED: Final = 2  # calls of a copy that name it
Outputs: TypeAlias = tuple[TensorInfo | None, ...]


def with_ranges(graph: Graph, items: Iterable[Item]) -> Graph:
    """Write the shapes in the first copy of each repeat for all of its copies: `f32[13..34, 32]`."""
    outputs = _outputs_and_leaves(graph)
    met: dict[int, dict[Outputs, None]] = {}  # those of a node and its twins, where they are not all the same
    for scope in _repeats(items):
        copies = copy_ranges(scope)
        if not met and _are_alike(outputs, copies):
            continue
        for twins in zip(*copies, strict=True):
            found: dict[Outputs, None] = {}
            for twin in twins:
                found |= met.get(twin) or {outputs[twin]: None}
            if len(found) > 1:
                met[twins[0]] = found
    nodes = list(graph.nodes)
    for node_id, found in met.items():
        _write_ranges(graph, nodes, node_id, tuple(map(_range_of, *found)))
    return replace(graph, nodes=tuple(nodes)) if met else graph


def _write_ranges(graph: Graph, nodes: list[Node], node_id: int, several: Outputs) -> None:
    """Write the shapes of a node and of the leaves that it leads to."""
    node = graph.nodes[node_id]
    num_outputs = len(node.forward_outputs)
    nodes[node_id] = replace(node, forward_outputs=several[:num_outputs])
    for leaf, info in zip(_leaves_of(graph, node), several[num_outputs:], strict=True):
        if leaf is not None and info is not None:
            nodes[leaf] = _sized(nodes[leaf], info)


def _outputs_and_leaves(graph: Graph) -> list[Outputs]:
    """Return for each node what its forward gave, and then for each edge the leaf that it leads to."""
    infos = [None if node.leaf is None else node.leaf.info for node in graph.nodes]
    return [
        (*node.forward_outputs, *[None if leaf is None else infos[leaf] for leaf in _leaves_of(graph, node)])
        for node in graph.nodes
    ]


def _leaves_of(graph: Graph, node: Node) -> list[int | None]:
    """Return the node of the leaf that each edge leads to, None where it leads to none."""
    nodes = graph.nodes
    return [None if edge is None or nodes[edge.next_node].leaf is None else edge.next_node for edge in node.next_edges]


def _sized(node: Node, info: TensorInfo) -> Node:
    """Return the node of a leaf with another shape."""
    if node.leaf is None:
        return node
    outputs = tuple(info if given == node.leaf.info else given for given in node.forward_outputs)
    return replace(node, leaf=replace(node.leaf, info=info), forward_outputs=outputs)


def name_of_blocks(graph: Graph, scope: Scope, copies: slice = slice(None)) -> str | None:
    """Name the blocks of modules that a repeat stands for, or some of them: `h.0-11  Block`; None without modules.

    Copies of several calls are named by the first two: `norms.1-2, convs.1-2`.
    """
    calls = calls_of_blocks(graph, scope, copies)
    names = [name_together([short_name(call.path, None, graph.model_name) for call in found]) for found in calls]
    if len(names) == 1:
        return f"{names[0]}  {calls[0][0].class_name}"
    return ", ".join(names[:MAX_NAMED]) + (", …" if len(names) > MAX_NAMED else "") or None


def calls_of_blocks(graph: Graph, scope: Scope, copies: slice = slice(None)) -> list[list[ModuleCall]]:
    """List the module calls in the first copy of a repeat, each with its twins in the others, or in some of them."""
    bodies = (scope.items, *scope.copies)[copies] if scope.kind == "repeat" else ()
    return [found for twins in zip(*bodies, strict=True) if (found := _calls(graph, twins))]


def _calls(graph: Graph, items: Iterable[Item]) -> list[ModuleCall]:
    """Return the module calls among some items."""
    return [graph.modules[item.module] for item in items if isinstance(item, Scope) and item.module is not None]


def name_together(names: Sequence[str]) -> str:
    """Name twins by their numbers, or by the first and the last."""
    return fold_name(names) or " … ".join(dict.fromkeys((names[0], names[-1])))


def bytes_of_twins(items: Iterable[Item], held: Sequence[int]) -> dict[range, tuple[int, int]]:
    """Return the least and the most that what is in the first copy of a repeat and its twins hold, if not equal.

    Args:
        items: Of a folding.
        held: Bytes for each node.
    """
    before = list(accumulate(held, initial=0))
    met: dict[range, tuple[int, int]] = {}
    for scope in _repeats(items):
        copies = copy_ranges(scope)
        if not met and _are_alike(held, copies):
            continue
        for ids in _all_inside(scope.items):
            ends: list[int] = []
            for copy in copies:
                shift = copy.start - copies[0].start
                twin = range(ids.start + shift, ids.stop + shift)
                ends += met.get(twin, (before[twin.stop] - before[twin.start],))
            if min(ends) < max(ends):
                met[ids] = (min(ends), max(ends))
    return met


def format_bytes_between(least: int, most: int) -> str:
    """Write the least and the most: `12.3..20.0 KiB`, `512 B..1.0 KiB`; one number where they are written alike."""
    low, high = format_bytes(least), format_bytes(most)
    if low == high:
        return low
    number, _, unit = low.partition(" ")
    return f"{number if high.endswith(f' {unit}') else low}..{high}"


def _repeats(items: Iterable[Item]) -> Iterator[Scope]:
    """Yield the repeats that one copy stands for, inner ones first."""
    found, waiting = list[Scope](), list(items)
    while waiting:
        item = waiting.pop()
        if isinstance(item, Scope):
            if item.copies and not fits_unfolded(item):
                found.append(item)
            waiting += [inner for body in (item.items, *item.copies) for inner in body]
    return reversed(found)


def copy_ranges(scope: Scope) -> list[range]:
    """Return the ids of each copy of a repeat, including the first."""
    return [range(node_ids(body[0]).start, node_ids(body[-1]).stop) for body in (scope.items, *scope.copies)]


def _are_alike(values: Sequence[object], copies: Sequence[range]) -> bool:
    first, *others = (values[copy.start : copy.stop] for copy in copies)
    return all(other == first for other in others)


def _all_inside(items: Iterable[Item]) -> Iterator[range]:
    """Yield the ids of all nodes and scopes."""
    waiting = list(items)
    while waiting:
        item = waiting.pop()
        yield node_ids(item)
        if isinstance(item, Scope):
            waiting += [inner for body in (item.items, *item.copies) for inner in body]


def _range_of(*infos: TensorInfo | None) -> TensorInfo | None:
    first = infos[0]
    others = [info for info in infos if info is not None]
    if first is None or len(others) < len(infos) or len({len(info.shape) for info in others}) > 1:
        return first
    shape = tuple(_sizes_together(sizes) for sizes in zip(*(info.shape for info in others), strict=True))
    return replace(first, shape=shape, local_shape=first.local_shape if shape == first.shape else None)


def _sizes_together(sizes: Sequence[Size]) -> Size:
    known = [size for size in sizes if isinstance(size, int)]
    if len(set(sizes)) == 1:
        return sizes[0]
    return f"{min(known)}..{max(known)}" if len(known) == len(sizes) else "?"
