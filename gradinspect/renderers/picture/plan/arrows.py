"""Choose the arrows of a picture.

What comes in: a `Graph` and the boxes of its picture. What goes out: arrows in the order of their tails. Each edge
between two nodes is an arrow, part of a counted arrow, or inside a box.

NOTE [Users of one node]
A mask, or the output of an encoder, may be used in each of a thousand layers. A thousand arrows across up to a thousand
ranks take Graphviz minutes and cannot be followed by eye. So a node with many users gets arrows from the nearest few;
the others name their target instead, as uses of a leaf do.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gradinspect.analyses.structure.skips import skip_edges
from gradinspect.graph import Edge, Graph
from gradinspect.renderers.picture.plan.parts import (
    MAX_USERS,
    Box,
    Columns,
    Part,
    ScopeEnd,
    ScopeStart,
    columns_of,
    group_between,
    is_detailed,
)

MAX_PARALLEL = 8  # arrows from one node to another
MAX_USERS_DRAWN = 5  # arrows to one box with more than MAX_USERS users, the nearest ones


class Arrow(NamedTuple):
    """Edges between two boxes. An arrow between two nodes or chains of views is a single edge with a position."""

    tail: int  # index into Drawing.boxes
    head: int
    position: int | None
    input_nr: int
    num_edges: int
    is_trunk: bool = False  # starts the longest path to a leaf; these are drawn straight
    is_skip: bool = False  # goes around the body of a closed box: NOTE [Skips] in `structure.skips`
    length: int = 1  # ranks between its ends, so that what follows a module is drawn below it


def find_arrows(
    graph: Graph, parts: Sequence[Part], box_of: Sequence[int], *, has_chips: bool = True
) -> tuple[tuple[Arrow, ...], tuple[Arrow, ...]]:
    """Return an arrow for each edge between two nodes, and one for all edges between two boxes of many nodes.

    Many edges from one node to another also share one arrow. The second result holds references: NOTE [Users of one
    node].
    """
    boxes = [part for part in parts if isinstance(part, Box)]
    counts = Counter((box_of[node_id], box_of[edge.next_node]) for node_id, _, edge in _edges(graph))
    arrows: list[Arrow] = []
    for node_id, position, edge in _edges(graph):
        tail, head = ends = box_of[node_id], box_of[edge.next_node]
        if tail != head and counts[ends] <= MAX_PARALLEL and is_detailed(boxes[tail]) and is_detailed(boxes[head]):
            arrows.append(Arrow(tail, head, position, edge.input_nr, 1))
    singles = {(arrow.tail, arrow.head) for arrow in arrows}
    skips = _skips(graph, boxes, box_of)
    for ends, number in counts.items():
        if ends not in singles and ends[0] != ends[1]:
            arrows.append(Arrow(*ends, None, 0, number - skips[ends]))
            arrows += [Arrow(*ends, None, 0, skips[ends], is_skip=True)] if skips[ends] else []
    arrows, references = _with_few_users(sorted(arrows, key=_tail))
    have_leaves = [has_chips and _has_leaves(graph, box) for box in boxes]
    return with_lengths(_with_trunks(arrows, len(boxes)), parts, have_leaves), references


def _skips(graph: Graph, boxes: Sequence[Box], box_of: Sequence[int]) -> Counter[tuple[int, int]]:
    """Count the residual connections between each two boxes."""
    edges = (edge for box in boxes if not is_detailed(box) for edge in skip_edges(graph, box.ids))
    heads = ((tail, graph.nodes[tail].next_edges[position]) for tail, position in edges)
    return Counter((box_of[tail], box_of[edge.next_node]) for tail, edge in heads if edge is not None)


def _with_few_users(arrows: Sequence[Arrow]) -> tuple[list[Arrow], tuple[Arrow, ...]]:
    users = Counter(arrow.head for arrow in arrows)
    are_few = {head for head, number in users.items() if number <= MAX_USERS}
    drawn: list[Arrow] = []
    references: list[Arrow] = []
    for arrow in arrows:
        is_near = arrow.head in are_few or users[arrow.head] <= MAX_USERS_DRAWN
        (drawn if is_near else references).append(arrow)
        users[arrow.head] -= 1
    return drawn, tuple(references)


def _tail(arrow: Arrow) -> int:
    return arrow.tail


def _edges(graph: Graph) -> Iterator[tuple[int, int, Edge]]:
    for node_id, node in enumerate(graph.nodes):
        for position, edge in enumerate(node.next_edges):
            if edge is not None and graph.nodes[edge.next_node].kind != "accumulate_grad":
                yield node_id, position, edge


def _with_trunks(arrows: Sequence[Arrow], num_boxes: int) -> list[Arrow]:
    """Mark the arrow that starts the longest path out of each box."""
    heights = [0] * num_boxes
    trunks: dict[int, int] = {}
    for index in range(len(arrows) - 1, -1, -1):
        tail, head = arrows[index].tail, arrows[index].head
        if heights[head] >= heights[tail] and not arrows[index].is_skip:
            heights[tail] = heights[head] + 1
            trunks[tail] = index
    marked = set(trunks.values())
    return [arrow._replace(is_trunk=index in marked) for index, arrow in enumerate(arrows)]


def with_lengths(
    arrows: Sequence[Arrow],
    parts: Sequence[Part],
    have_leaves: Sequence[bool] = (),
    columns: Sequence[Columns] = (),
    *,
    turns: bool = False,
) -> tuple[Arrow, ...]:
    """Make each arrow that leaves an expanded scope long enough to end below the scope and its leaves.

    A tail's scope ends before its head starts, so in the order of heads the lowest rank of each scope is already known.

    Args:
        arrows: The arrows.
        parts: What is drawn.
        have_leaves: For each box whether leaves are drawn below it; none by default.
        columns: What is side by side: it begins at the same rank, and arrows between columns do not count.
        turns: Whether every second column runs back: what leaves it may come from its top.
    """
    paths, in_columns = _scope_paths(parts), columns_of(parts, columns)
    arrows_to: list[list[int]] = [[] for _ in paths]
    for place, arrow in enumerate(arrows):
        if group_between(in_columns[arrow.tail], in_columns[arrow.head]) is None:
            arrows_to[arrow.head].append(place)
    ranks = [0] * len(paths)
    tops: dict[int, int] = {}  # group -> the rank of its first box
    bottoms: Counter[int] = Counter()  # scope -> its lowest rank so far
    lengths = [1] * len(arrows)
    for index, path in enumerate(paths):
        ranks[index] = max((tops[group] for group, column in in_columns[index].items() if column), default=0)
        for place in arrows_to[index]:
            tail = arrows[place].tail
            left = next((scope for scope in paths[tail] if scope not in path), None)
            above = [tops[group] for group in in_columns[tail].keys() - in_columns[index].keys()] if turns else []
            lengths[place] = 1 if left is None else bottoms[left] - min((*above, ranks[tail])) + 1
            ranks[index] = max(ranks[index], ranks[tail] + lengths[place])
        for group in in_columns[index]:
            tops.setdefault(group, ranks[index])
        bottom = ranks[index] + (index < len(have_leaves) and have_leaves[index])
        for scope in path:
            bottoms[scope] = max(bottoms[scope], bottom)
    return tuple(arrow._replace(length=length) for arrow, length in zip(arrows, lengths, strict=True))


def _scope_paths(parts: Sequence[Part]) -> list[tuple[int, ...]]:
    """Return the expanded scopes around each box, outermost first, as indices of their `ScopeStart`."""
    path: list[int] = []
    paths: list[tuple[int, ...]] = []
    for place, part in enumerate(parts):
        match part:
            case ScopeStart():
                path.append(place)
            case ScopeEnd():
                path.pop()
            case Box():
                paths.append(tuple(path))
    return paths


def _has_leaves(graph: Graph, box: Box) -> bool:
    edges = graph.nodes[box.ids.stop - 1].next_edges if is_detailed(box) else ()
    return any(edge is not None and graph.nodes[edge.next_node].kind == "accumulate_grad" for edge in edges)
