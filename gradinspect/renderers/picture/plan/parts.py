"""Choose the boxes of a picture: which scopes are expanded, what shares a box, what is left out.

What comes in: a `Graph` and its folding. What goes out: boxes in id order, and where expanded scopes begin and end.

NOTE [Boxes are ranges]
A box stands for a contiguous range of node ids: one node, a collapsed scope, the later copies of a repeat, or nodes
that were too many to draw. Ids are in topological order, so boxes never form a cycle.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Literal, NamedTuple, TypeAlias

from gradinspect.analyses.structure.cut import Cut
from gradinspect.analyses.structure.expansion import fits_unfolded, opens_to
from gradinspect.analyses.structure.folding import Item, Scope, node_ids
from gradinspect.analyses.structure.outline import IsOpen, body_of
from gradinspect.graph import Edge, Graph, Record, num_consumers
from gradinspect.renderers.facts import PageFacts

BoxKind: TypeAlias = Literal["node", "shapes", "closed", "copies", "cut"]
ColorBy: TypeAlias = Literal["grad", "bytes", "flops", "dtype", "device", "module", "file"]
Direction: TypeAlias = Literal["TB", "BT", "LR", "RL"]
FitTo: TypeAlias = Literal["screen", "a4", "slide", "none"]  # NOTE [A picture that fits] in `picture.fitting`
Theme: TypeAlias = Literal["light", "dark", "paper"]  # paper: NOTE in `picture.paper`
MAX_USERS = 50  # arrows to one box: NOTE [Users of one node] in `arrows`
MAX_CHIPS = 8  # leaves drawn beside one node; the rest share one chip
MAX_LEVELS = 1_000_000
ROOT_SIDE_SHARE = 2 / 3  # of the boxes drawn when a graph is cut


class DrawOptions(Record, frozen=True, kw_only=True):
    """How to draw a graph."""

    depth: int | None = None  # of nested expanded scopes; None: what fits, or NOTE [About forty boxes] in `expansion`
    fit_to: FitTo = "none"
    counts_leaves: bool = False  # in a compact picture: their number, where there is no room for their names
    full: bool = False  # fold no repeats, collapse nothing
    fold_shapes: bool = False  # draw a chain of shape-only nodes as one box
    none_edges: bool = False
    saved: bool = False
    argument_names: bool = True
    direction: Direction = "TB"  # TB: roots on top
    color_by: ColorBy | None = None
    statuses: tuple[str, ...] = ()  # by node: added, removed or changed; sets the color
    theme: Theme = "light"
    links: tuple[str | None, ...] = ()  # the URL of each line in Graph.frames; empty without links
    facts: PageFacts = PageFacts()  # for an HTML page
    cut: Cut | None = None  # what is missing, if the graph is part of another
    max_boxes: int | None = 2000  # including chips; above that the picture is folded, then cut

    @property
    def is_compact(self) -> bool:
        """Whether leaves are rows in the boxes that use them, rather than boxes of their own."""
        return self.fit_to != "none" and not self.full


class Box(NamedTuple):
    """Something drawn as one box. The only node of a module call carries the call instead of being framed by it."""

    kind: BoxKind
    ids: range
    scope: Scope | None = None


def is_detailed(box: Box) -> bool:
    """Return whether a box is drawn with its leaves and named edges: one node, or one chain of views."""
    return box.kind in ("node", "shapes")


class ScopeStart(NamedTuple):
    """The boxes from here to the matching `ScopeEnd` are inside a scope."""

    scope: Scope
    level: int


class ScopeEnd(NamedTuple):
    """The end of the innermost expanded scope."""


Part: TypeAlias = Box | ScopeStart | ScopeEnd
Columns: TypeAlias = tuple[range, ...]  # of parts: what is drawn side by side in one frame, the root side first


def columns_of(parts: Sequence[Part], groups: Sequence[Columns]) -> list[dict[int, int]]:
    """Return for each box in which column of which group it is."""
    places = [place for place, part in enumerate(parts) if isinstance(part, Box)]
    found: list[dict[int, int]] = [{} for _ in places]
    for number, group in enumerate(groups):
        for column, run in enumerate(group):
            for index in range(bisect_left(places, run.start), bisect_left(places, run.stop)):
                found[index][number] = column
    return found


def group_between(one: Mapping[int, int], other: Mapping[int, int]) -> int | None:
    """Return the group in which two boxes are in different columns; None if there is none."""
    return next((group for group, column in one.items() if group in other and other[group] != column), None)


def is_turned(groups: Iterable[int], columns: Mapping[int, int]) -> bool:
    """Return whether every second column runs back an odd number of times.

    Args:
        groups: The groups of columns that count.
        columns: In which column of each group it is.
    """
    return sum(columns[group] % 2 for group in groups) % 2 == 1


def deepest_level(scope: Scope) -> int:
    """Return the depth of the most deeply nested scope."""
    deepest, level = 0, 0
    for part in parts_of(scope.items, opens_to(MAX_LEVELS)):
        level += isinstance(part, ScopeStart) - isinstance(part, ScopeEnd)
        deepest = max(deepest, level)
    return deepest


def parts_of(items: Iterable[Item], is_open: IsOpen) -> Iterator[Part]:
    """Yield boxes, and where expanded scopes begin and end, in id order."""
    level = 0
    waiting: list[Item | Part] = list(reversed(tuple(items)))
    while waiting:
        item = waiting.pop()
        if isinstance(item, int):
            yield Box("node", range(item, item + 1))
        elif not isinstance(item, Scope):
            level -= isinstance(item, ScopeEnd)
            yield item
        elif fits_unfolded(item):
            waiting.extend(reversed([inner for items in (item.items, *item.copies) for inner in items]))
        elif item.kind == "module" and item.num_nodes == 1:
            yield Box("node", node_ids(item), item)
        elif item.kind == "shapes":
            yield Box("shapes", node_ids(item), item)
        elif not is_open(item, level):
            yield Box("closed", node_ids(item), item)
        else:
            yield ScopeStart(item, level)
            level += 1
            inside: list[Item | Part] = [*body_of(item), *_later_copies(item), ScopeEnd()]
            waiting.extend(reversed(inside))


def _later_copies(scope: Scope) -> list[Box]:
    if not scope.copies:
        return []
    first, last = node_ids(scope.copies[0][0]), node_ids(scope.copies[-1][-1])
    return [Box("copies", range(first.start, last.stop), scope)]


class PartChooser:
    """Counts what a box adds to the picture: itself, its leaves, its saved tensors."""

    def __init__(self, graph: Graph, options: DrawOptions) -> None:
        self.graph = graph
        self.options = options
        self.max_boxes = options.max_boxes
        users = num_consumers(graph)
        self.shared = {node_id for node_id, number in users.items() if number > MAX_USERS}

    def fitting_parts(self, scope: Scope, is_open: IsOpen) -> list[Part] | None:
        """Return the parts of a picture, or None if there are too many."""
        parts: list[Part] = []
        weight = 0
        for part in parts_of(scope.items, is_open):
            parts.append(part)
            weight += self.weight(part)
            if self.max_boxes is not None and weight > self.max_boxes:
                return None
        return parts

    def cut_parts(self, scope: Scope) -> tuple[list[Part], int]:
        """Draw both ends of the outermost items and one box in between; return the parts and the nodes left out."""
        boxes = [part for part in parts_of(scope.items, opens_to(0)) if isinstance(part, Box)]
        room = self.max_boxes or 0
        head = self._how_many(boxes, room * ROOT_SIDE_SHARE)
        tail = self._how_many(list(reversed(boxes[head:])), room * (1 - ROOT_SIDE_SHARE))
        between = boxes[head : len(boxes) - tail]
        left_out = range(between[0].ids.start, between[-1].ids.stop)
        missing = sum(self.graph.nodes[node_id].kind != "accumulate_grad" for node_id in left_out)
        return [*boxes[:head], Box("cut", left_out), *boxes[len(boxes) - tail :]], missing

    def _how_many(self, boxes: Sequence[Box], room: float) -> int:
        """Count how many of the first boxes fit, leaving out at least one."""
        for number, box in enumerate(islice(boxes, len(boxes) - 1)):
            room -= self.weight(box)
            if room < 0:
                return number
        return max(len(boxes) - 1, 0)

    def weight(self, part: Part) -> int:
        """Count a box and everything attached to it."""
        if not isinstance(part, Box):
            return 0
        if not is_detailed(part):
            return 1
        node = self.graph.nodes[part.ids.stop - 1]
        shown = sum(self.options.none_edges if edge is None else self._is_attached(edge) for edge in node.next_edges)
        saved = sum(value.kind == "tensor" for value in node.saved) if self.options.saved else 0
        return 1 + min(shown, MAX_CHIPS) + min(saved, MAX_CHIPS)

    def _is_attached(self, edge: Edge) -> bool:
        """Return whether an edge leads to something small beside the box: a leaf, or a reference to a node."""
        return edge.next_node in self.shared or self.graph.nodes[edge.next_node].kind == "accumulate_grad"
