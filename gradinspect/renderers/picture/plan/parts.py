"""Choose the boxes of a picture: which scopes are open, what is drawn in one box, what is left out.

What comes in: a `Graph` and its folding. What goes out: boxes in id order, and where open scopes begin and end.

NOTE [Boxes are ranges]
A box stands for an unbroken range of node ids: one node, a closed scope, the later copies of a repeat, or what was too
much to draw. Ids are in topological order, so boxes never make a cycle.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Literal, NamedTuple, TypeAlias

from gradinspect.analyses.structure.cut import Cut
from gradinspect.analyses.structure.folding import Item, Scope, node_ids
from gradinspect.analyses.structure.outline import body_of
from gradinspect.graph import Edge, Graph, Record, num_consumers
from gradinspect.renderers.facts import PageFacts

BoxKind: TypeAlias = Literal["node", "shapes", "closed", "copies", "cut"]
ColourBy: TypeAlias = Literal["grad", "bytes", "dtype", "device", "module", "file"]
Direction: TypeAlias = Literal["TB", "BT", "LR", "RL"]
MAX_USERS = 50  # arrows to one box: NOTE [Users of one node] in `drawing_arrows`
MAX_CHIPS = 8  # leaves drawn beside one node; the rest is one chip
MAX_LEVELS = 1_000_000
MAX_NODES_UNFOLDED = 12  # a repeat of so few nodes is easier to read than its fold
ROOT_SIDE_SHARE = 2 / 3  # of what is drawn when a graph is cut


class DrawOptions(Record, frozen=True, kw_only=True):
    """How to draw a graph."""

    depth: int | None = None  # open scopes inside one another
    full: bool = False  # fold no repeats, close nothing
    fold_shapes: bool = False  # chains of shape-only nodes are one box
    none_edges: bool = False
    saved: bool = False
    argument_names: bool = True
    direction: Direction = "TB"  # TB: roots on top
    colour_by: ColourBy | None = None
    dark: bool = False
    links: tuple[str | None, ...] = ()  # the address of each line in Graph.frames, or nothing at all
    facts: PageFacts = PageFacts()  # for a page
    cut: Cut | None = None  # what the graph lacks, when it is a part of another
    max_boxes: int | None = 2000  # chips included; past it the picture is folded, then cut


class Box(NamedTuple):
    """Something drawn as one box. A node that is all of a module call carries the call instead of a frame around it."""

    kind: BoxKind
    ids: range
    scope: Scope | None = None


def is_detailed(box: Box) -> bool:
    """Tell whether a box is drawn with its leaves, and its edges with their names: one node, or one chain of views."""
    return box.kind in ("node", "shapes")


class Opening(NamedTuple):
    """The boxes from here to its closing are inside a scope."""

    scope: Scope
    level: int


class Closing(NamedTuple):
    """Where the innermost open scope ends."""


Part: TypeAlias = Box | Opening | Closing


def deepest_level(scope: Scope) -> int:
    """Return how many scopes are inside one another at most."""
    deepest, level = 0, 0
    for part in parts_of(scope.items, MAX_LEVELS):
        level += isinstance(part, Opening) - isinstance(part, Closing)
        deepest = max(deepest, level)
    return deepest


def parts_of(items: Iterable[Item], depth: int) -> Iterator[Part]:
    """Yield boxes, and where open scopes begin and end, in id order."""
    level = 0
    waiting: list[Item | Part] = list(reversed(tuple(items)))
    while waiting:
        item = waiting.pop()
        if isinstance(item, int):
            yield Box("node", range(item, item + 1))
        elif not isinstance(item, Scope):
            level -= isinstance(item, Closing)
            yield item
        elif item.copies and item.num_nodes <= MAX_NODES_UNFOLDED:
            waiting.extend(reversed([inner for items in (item.items, *item.copies) for inner in items]))
        elif item.kind == "module" and item.num_nodes == 1:
            yield Box("node", node_ids(item), item)
        elif item.kind == "shapes":
            yield Box("shapes", node_ids(item), item)
        elif level >= depth:
            yield Box("closed", node_ids(item), item)
        else:
            yield Opening(item, level)
            level += 1
            inside: list[Item | Part] = [*body_of(item), *_later_copies(item), Closing()]
            waiting.extend(reversed(inside))


def copy_ranges(scope: Scope) -> list[range]:
    """Return the ids of each copy of a repeat, the first one included."""
    return [range(node_ids(items[0]).start, node_ids(items[-1]).stop) for items in (scope.items, *scope.copies)]


def _later_copies(scope: Scope) -> list[Box]:
    if not scope.copies:
        return []
    first, last = node_ids(scope.copies[0][0]), node_ids(scope.copies[-1][-1])
    return [Box("copies", range(first.start, last.stop), scope)]


class PartChooser:
    """Counts what a box puts on the paper: itself, its leaves, its saved tensors."""

    def __init__(self, graph: Graph, options: DrawOptions) -> None:
        self.graph = graph
        self.options = options
        self.max_boxes = options.max_boxes
        users = num_consumers(graph)
        self.shared = {node_id for node_id, number in users.items() if number > MAX_USERS}

    def fitting_parts(self, scope: Scope, depth: int) -> list[Part] | None:
        """Return the parts of a picture if they are not too many."""
        parts: list[Part] = []
        weight = 0
        for part in parts_of(scope.items, depth):
            parts.append(part)
            weight += self.weight(part)
            if self.max_boxes is not None and weight > self.max_boxes:
                return None
        return parts

    def cut_parts(self, scope: Scope) -> tuple[list[Part], int]:
        """Draw both ends of the outermost items, and one box for all between; return it with the nodes left out."""
        boxes = [part for part in parts_of(scope.items, 0) if isinstance(part, Box)]
        room = self.max_boxes or 0
        head = self._how_many(boxes, room * ROOT_SIDE_SHARE)
        tail = self._how_many(list(reversed(boxes[head:])), room * (1 - ROOT_SIDE_SHARE))
        between = boxes[head : len(boxes) - tail]
        left_out = range(between[0].ids.start, between[-1].ids.stop)
        missing = sum(self.graph.nodes[node_id].kind != "accumulate_grad" for node_id in left_out)
        return [*boxes[:head], Box("cut", left_out), *boxes[len(boxes) - tail :]], missing

    def _how_many(self, boxes: Sequence[Box], room: float) -> int:
        """Count the boxes from the first on that fit, leaving one out at least."""
        for number, box in enumerate(islice(boxes, len(boxes) - 1)):
            room -= self.weight(box)
            if room < 0:
                return number
        return max(len(boxes) - 1, 0)

    def weight(self, part: Part) -> int:
        """Count a box and what hangs on it."""
        if not isinstance(part, Box):
            return 0
        if not is_detailed(part):
            return 1
        node = self.graph.nodes[part.ids.stop - 1]
        shown = sum(self.options.none_edges if edge is None else self._hangs_on(edge) for edge in node.next_edges)
        saved = sum(value.kind == "tensor" for value in node.saved) if self.options.saved else 0
        return 1 + min(shown, MAX_CHIPS) + min(saved, MAX_CHIPS)

    def _hangs_on(self, edge: Edge) -> bool:
        """Tell whether an edge leads to something small beside the box: a leaf, or a word about where it goes on."""
        return edge.next_node in self.shared or self.graph.nodes[edge.next_node].kind == "accumulate_grad"
