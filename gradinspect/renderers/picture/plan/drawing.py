"""Decide what a picture shows, within a budget of boxes.

What comes in: a `Graph` and options. What goes out: a `Drawing`, boxes in id order and the arrows between them.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from gradinspect.analyses.structure.expansion import opens_to, readable_depth
from gradinspect.analyses.structure.folding import Scope, fold_graph
from gradinspect.analyses.structure.outline import IsOpen
from gradinspect.graph import Graph
from gradinspect.renderers.picture.plan.arrows import Arrow, find_arrows, with_lengths
from gradinspect.renderers.picture.plan.fans import MAX_FAN, fold_fans
from gradinspect.renderers.picture.plan.parts import (
    MAX_LEVELS,
    Box,
    Columns,
    DrawOptions,
    Part,
    PartChooser,
    deepest_level,
)
from gradinspect.units import format_count

MAX_FRAMES = 40  # nested; Graphviz needs time quadratic in their number, and nobody nests that many modules


class Drawing(NamedTuple):
    """What to draw."""

    parts: tuple[Part, ...]
    boxes: tuple[Box, ...]
    box_of: Sequence[int]  # node id -> index into boxes; AccumulateGrad nodes are chips, not boxes
    arrows: tuple[Arrow, ...]
    references: tuple[Arrow, ...]  # written at the tail, not drawn: NOTE [Users of one node]
    notes: tuple[str, ...]  # what was folded or cut without being asked for
    columns: tuple[Columns, ...] = ()  # NOTE [Columns] in `plan.columns`
    turns: bool = False  # every second column runs back, as a U does
    mirrored: frozenset[int] = frozenset()  # which columns Graphviz is given from the last to the first


def plan_drawing(graph: Graph, options: DrawOptions) -> Drawing:
    """Choose boxes that fit into `options.max_boxes`: as requested, or folded, or less deep, or cut."""
    chooser = PartChooser(graph, options)
    scope: Scope | None = None
    too_many = f"limit is {options.max_boxes or 0:,} boxes"
    for scope, depth, change in _ever_coarser(graph, options, too_many):
        parts = chooser.fitting_parts(scope, opens_to(depth))
        if parts is not None:
            return _with_fans_folded(graph, options, parts, (change,) if change else ())
    assert scope is not None  # noqa: S101 - the loop ran at least once
    return _cut(chooser, scope)


def plan_opened(chooser: PartChooser, folded: Scope, is_open: IsOpen) -> Drawing:
    """Choose boxes where it is known which scopes to expand; cut what is still too much."""
    parts = chooser.fitting_parts(folded, is_open)
    return _cut(chooser, folded) if parts is None else _with_fans_folded(chooser.graph, chooser.options, parts, ())


def _cut(chooser: PartChooser, scope: Scope) -> Drawing:
    parts, missing = chooser.cut_parts(scope)
    words = f"{format_count(missing, 'node')} not drawn: limit is {chooser.max_boxes or 0:,} boxes"
    return _with_fans_folded(chooser.graph, chooser.options, parts, (words,))


def in_columns(drawing: Drawing, columns: tuple[Columns, ...], *, turns: bool = False) -> Drawing:
    """Set a compact drawing in columns, of which every second may run back."""
    arrows = with_lengths(drawing.arrows, drawing.parts, columns=columns, turns=turns)
    return drawing._replace(columns=columns, arrows=arrows, turns=turns, mirrored=frozenset())


def count_boxes(graph: Graph, options: DrawOptions) -> int:
    """Count the boxes and what is attached to them when nothing is folded or collapsed."""
    chooser = PartChooser(graph, options)
    boxes = (Box("node", range(number, number + 1)) for number, node in enumerate(graph.nodes) if node.leaf is None)
    return sum(map(chooser.weight, boxes))


def _ever_coarser(graph: Graph, options: DrawOptions, too_many: str) -> Iterator[tuple[Scope, int, str]]:
    """Yield foldings and depths to try, each with a note on how it differs from the request."""
    scope = fold_graph(graph, repeats=not options.full, shapes=options.fold_shapes)
    depth = _depth(scope, options)
    if options.max_boxes is not None and depth > MAX_FRAMES and deepest_level(scope) > MAX_FRAMES:
        depth = MAX_FRAMES
        yield scope, depth, f"folded to depth {depth}: limit is {MAX_FRAMES} nested frames"
    else:
        yield scope, depth, ""
    if options.full:
        scope = fold_graph(graph, shapes=options.fold_shapes)
        yield scope, depth, f"repeats folded: {too_many}"
    for less in range(min(depth, deepest_level(scope)) - 1, -1, -1):
        yield scope, less, f"folded to depth {less}: {too_many}"


def _depth(scope: Scope, options: DrawOptions) -> int:
    if options.full:
        return MAX_LEVELS
    return readable_depth(scope) if options.depth is None else options.depth


def closed_blocks(boxes: Iterable[Box], options: DrawOptions) -> str:
    """Count the closed boxes, and say what opens them if nobody asked for them; "" if there are none."""
    closed = sum(box.kind == "closed" for box in boxes)
    chosen = options.depth is not None or options.full or options.statuses
    after = "leaves inside are counted, not drawn" if chosen else "--depth or --full open them"
    return f"{format_count(closed, 'block')} closed; {after}" if closed else ""


def _with_fans_folded(graph: Graph, options: DrawOptions, parts: Sequence[Part], notes: tuple[str, ...]) -> Drawing:
    """Leave out the middle of wide fans, unless the full graph was requested without limits."""
    if options.max_boxes is None:
        return _drawing(graph, options, parts, notes)
    parts, missing = fold_fans(graph, parts)
    words = f"{format_count(missing, 'node')} not drawn: limit is {MAX_FAN} inputs per node"
    return _drawing(graph, options, parts, (*notes, words) if missing else notes)


def _drawing(graph: Graph, options: DrawOptions, parts: Sequence[Part], notes: tuple[str, ...]) -> Drawing:
    boxes = tuple(part for part in parts if isinstance(part, Box))
    box_of = [-1] * len(graph.nodes)
    for index, box in enumerate(boxes):
        box_of[box.ids.start : box.ids.stop] = [index] * len(box.ids)
    arrows, references = find_arrows(graph, parts, box_of, has_chips=not options.is_compact)
    return Drawing(tuple(parts), boxes, box_of, arrows, references, notes)
