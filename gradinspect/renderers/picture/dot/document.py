"""Write a graph as DOT, the Graphviz language: one cluster per module call, one box per node.

What comes in: a `Graph`. What goes out: deterministic DOT text.

NOTE [Leaves at each use]
A leaf is drawn beside each node that uses it. A single box for a weight shared by 300 steps would have 300 long edges,
and long edges, not the number of nodes, are what layered layout cannot handle.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from gradinspect.analyses.structure.copy_ranges import copy_ranges, with_ranges
from gradinspect.analyses.structure.cut import lost_places
from gradinspect.analyses.structure.devices import crossings
from gradinspect.graph import Graph, Node, Root, argument_name
from gradinspect.renderers.picture.colors.palettes import Palette
from gradinspect.renderers.picture.dot.boxes import BoxWriter
from gradinspect.renderers.picture.dot.caption import caption, height_of_caption
from gradinspect.renderers.picture.dot.chips import Chips, leaves_of
from gradinspect.renderers.picture.dot.scene import Scene, set_scene
from gradinspect.renderers.picture.dot.scopes import TIMES
from gradinspect.renderers.picture.dot.text import attributes, join_names, quoted, tooltip
from gradinspect.renderers.picture.edge_labels import KEPT
from gradinspect.renderers.picture.plan.arrows import Arrow
from gradinspect.renderers.picture.plan.drawing import Drawing, plan_drawing
from gradinspect.renderers.picture.plan.parts import (
    MAX_CHIPS,
    Box,
    DrawOptions,
    Part,
    ScopeEnd,
    ScopeStart,
    columns_of,
    group_between,
    is_detailed,
    is_turned,
)
from gradinspect.renderers.picture.routing import MARGIN, ColumnArrow

FONT = "Helvetica"  # every Graphviz knows its metrics, and SVG viewers substitute a sans-serif font
RANKSEP, RANKSEP_OF_COMPACT, LEAST_RANKSEP = 0.28, 0.2, 0.12  # inches
MAX_ROOTS = 16  # that are leaves
MAX_ROOTS_OF_A_BOX = 3  # drawn one by one
PACKING = 'pack=14 packmode="array_i"'  # parts without a common node go into a grid, not into one row
LARGE = 300  # boxes; above that, Graphviz stops straightening lines earlier: half the time, nearly the same picture
LARGE_NSLIMIT = 3
SIDES = {"TB": "e", "BT": "e", "LR": "s", "RL": "s"}  # where a skip leaves a box and enters the next
PORTS = {"tailport": "headport", "headport": "tailport"}
BACK: Final[Mapping[str, str | float]] = {
    "dir": "back"
}  # an arrow in a column that runs back is laid out from its head to its tail
COLUMN_WEIGHT = 100  # of the invisible edge between the first boxes of two columns
LOOKS = {"color", "fontcolor", "penwidth", "style", KEPT}  # attributes of an arrow that Graphviz does not lay out
TRUNK_WEIGHT = 8  # how much straighter the longest path to a leaf is drawn than a side branch


def render_dot(graph: Graph, options: DrawOptions | None = None) -> str:
    """Write a graph as DOT."""
    options = options or DrawOptions()
    return write_dot(graph, plan_drawing(graph, options), options)


def write_dot(graph: Graph, drawing: Drawing, options: DrawOptions, *, caption_width: float | None = None) -> str:
    """Write a planned drawing as DOT.

    Args:
        graph: The graph.
        drawing: The drawing of it.
        options: How to draw it.
        caption_width: In points, what the caption may fill; None for one fact per line, 0 for no caption.
    """
    opened = (part.scope for part in drawing.parts if isinstance(part, ScopeStart) and not part.level)
    scene = set_scene(with_ranges(graph, opened), options, list(_drawn(drawing)))
    writer = _Writer(scene, drawing)
    title = tooltip(f"Autograd graph of {graph.source}")
    is_bare = options.theme == "paper" or caption_width == 0
    label = "" if is_bare else f"  label={caption(scene, drawing, caption_width)}\n"
    limit = f" nslimit={LARGE_NSLIMIT}" if len(drawing.boxes) > LARGE else ""
    packing = f" {PACKING}" if len(graph.roots) > 1 else ""
    head = f"  graph [rankdir={options.direction}{limit}{packing} tooltip={title}]\n{label}"
    lines = "".join(f"  {line}\n" for line in writer.statements())
    ranksep = LEAST_RANKSEP if options.counts_leaves else RANKSEP_OF_COMPACT if options.is_compact else RANKSEP
    preamble = _preamble(scene.palette, ranksep)
    return f'digraph "autograd" {{\n{preamble}{head}{lines}}}\n'


def crossings_of(graph: Graph, drawing: Drawing, options: DrawOptions) -> list[ColumnArrow]:
    """Describe the arrows from one column to another, which are not in the DOT text."""
    if not drawing.columns:
        return []
    return list(_Writer(set_scene(graph, options, list(_drawn(drawing))), drawing).crossings())


def part_names(parts: Sequence[Part]) -> dict[int, str]:
    """Return the name that each box and each frame has in the DOT text, by its place in the parts."""
    starts = [place for place, part in enumerate(parts) if isinstance(part, ScopeStart)]
    frames = {place: f"cluster_{number}" for number, place in enumerate(starts)}
    return {**frames, **{place: _name(part) for place, part in enumerate(parts) if isinstance(part, Box)}}


def caption_height(graph: Graph, drawing: Drawing, options: DrawOptions, width: float) -> float:
    """Estimate how high the caption is below a picture of this width, in points."""
    if options.theme == "paper":
        return 0.0
    return height_of_caption(set_scene(graph, options, list(_drawn(drawing))), drawing, width)


def frame_titles(graph: Graph, drawing: Drawing, options: DrawOptions) -> dict[str, str]:
    """Write the titles of the frames as nodes, by the names of their clusters."""
    boxes = BoxWriter(set_scene(graph, options, list(_drawn(drawing))))
    starts = (part for part in drawing.parts if isinstance(part, ScopeStart))
    return {f"cluster_{number}": boxes.title(part.scope, part.level) for number, part in enumerate(starts)}


def _preamble(palette: Palette, ranksep: float) -> str:
    return f"""\
  graph [fontname="{FONT}" fontsize=10 labelloc="b" labeljust="l" nodesep=0.18 ranksep={ranksep} pad=0.15 \
bgcolor="{palette.paper}" fontcolor="{palette.ink}"]
  node [fontname="{FONT}" fontsize=10 shape="box" style="filled,rounded" color="{palette.card_line}" \
fontcolor="{palette.ink}" penwidth=0.8 margin="0.08,0.04" height=0.2 width=0.2]
  edge [fontname="{FONT}" fontsize=8 fontcolor="{palette.quiet}" color="{palette.edge}" arrowsize=0.55 penwidth=0.8]
"""


def _drawn(drawing: Drawing) -> Iterator[range]:
    """Yield the ids of everything with its own fill: boxes, and each copy of a repeat."""
    for box in drawing.boxes:
        yield from copy_ranges(box.scope) if box.scope is not None and box.scope.copies else [box.ids]


class _Writer:
    """Writes the statements of one drawing."""

    def __init__(self, scene: Scene, drawing: Drawing) -> None:
        self.graph = scene.graph
        self.drawing = drawing
        self.options = scene.options
        self.palette = scene.palette
        self.references: dict[int, list[Arrow]] = {}
        for arrow in drawing.references:
            self.references.setdefault(drawing.boxes[arrow.tail].ids.start, []).append(arrow)
        self.boxes = BoxWriter(scene, self._targets() if scene.options.is_compact else None)
        self.chips = Chips(scene)
        self.devices_crossed = crossings(scene.graph)
        self.in_columns = columns_of(drawing.parts, drawing.columns)

    def _targets(self) -> dict[int, list[Box]]:
        return {tail: [self.drawing.boxes[arrow.head] for arrow in arrows] for tail, arrows in self.references.items()}

    def statements(self) -> Iterator[str]:
        if not self._has_columns_outside():
            yield from self._roots()
        yield from self._boxes()
        yield from self._side_by_side()
        for arrow in self.drawing.arrows:
            if self._group(arrow) is None:
                yield self._arrow(arrow)

    def crossings(self) -> Iterator[ColumnArrow]:
        """Describe the arrows that Graphviz must not draw: those from one column to another."""
        for arrow in self.drawing.arrows:
            group = self._group(arrow)
            if group is None:
                continue
            first, last = (self.in_columns[end][group] for end in (arrow.tail, arrow.head))
            values = self._arrow_values(arrow)
            yield ColumnArrow(
                tail=_name(self.drawing.boxes[arrow.tail]),
                head=_name(self.drawing.boxes[arrow.head]),
                columns=tuple(_column(group, number) for number in range(first, last + 1)),
                turned=(self._is_turned(arrow.tail, arrow.tail), self._is_turned(arrow.head, arrow.head)),
                near_tail=self._others(group, first, arrow.tail),
                near_head=self._others(group, last, arrow.head),
                attributes={name: value for name, value in values.items() if name in LOOKS},
            )

    def _group(self, arrow: Arrow) -> int | None:
        return group_between(self.in_columns[arrow.tail], self.in_columns[arrow.head])

    def _is_turned(self, one: int, other: int) -> bool:
        """Return whether the columns that two boxes share run back."""
        columns = self.in_columns[one]
        return self.drawing.turns and is_turned(columns.keys() & self.in_columns[other].keys(), columns)

    def _others(self, group: int, column: int, index: int) -> tuple[str, ...]:
        """Name the other boxes of a column."""
        pairs = zip(self.drawing.boxes, self.in_columns, strict=True)
        return tuple(_name(box) for place, (box, of) in enumerate(pairs) if of.get(group) == column and place != index)

    def _has_columns_outside(self) -> bool:
        return any(group[0].start == 0 for group in self.drawing.columns)

    def _side_by_side(self) -> Iterator[str]:
        """Put the first boxes of columns side by side, from left to right."""
        for number in range(len(self.drawing.columns)):
            of = [one.get(number) for one in self.in_columns]
            firsts = [self._first_of(of, column) for column in range(len(self.drawing.columns[number]))]
            for left, right in pairwise(firsts):
                yield _edge(_name(left), _name(right), {"style": "invis", "minlen": 0, "weight": COLUMN_WEIGHT})

    def _first_of(self, of: Sequence[int | None], column: int) -> Box:
        """Return the first box of a column, or the last one if it runs back."""
        first = of.index(column)
        last = len(of) - 1 - of[::-1].index(column)
        return self.drawing.boxes[last if self._is_turned(first, first) else first]

    def _roots(self) -> Iterator[str]:
        alone = sorted({root.node for root in self.graph.roots if self._is_leaf(root.node)})
        for node_id in alone[:MAX_ROOTS]:
            yield f"n{node_id} {self.chips.leaf(node_id)}"
        groups: dict[str, list[Root]] = {}
        for root in self.graph.roots:
            if not self._is_leaf(root.node) or root.node in alone[:MAX_ROOTS]:
                groups.setdefault(self._name_of(root.node), []).append(root)
        for index, (name, roots) in enumerate(groups.items()):
            if len(roots) <= MAX_ROOTS_OF_A_BOX:
                for place, root in enumerate(roots):
                    mark = f"root{index}" + (f"_{place}" if place else "")
                    yield f"{mark} {self.chips.root(root)}"
                    yield _edge(mark, name, _edge_label("", root.output_nr))
            else:
                yield f"root{index} {self.chips.several_roots(len(roots))}"
                yield f"root{index} -> {name}"

    def _boxes(self) -> Iterator[str]:
        level = 0
        names = part_names(self.drawing.parts)
        for place in self._places():
            part = self.drawing.parts[place]
            level -= isinstance(part, ScopeEnd)
            indent = "  " * level
            yield from self._columns_from(place)
            if isinstance(part, Box):
                yield f"{indent}{_name(part)} {self.boxes.box(part)}"
                yield from (indent + line for line in self._cut_edges(part))
                if not self.options.is_compact:
                    yield from (indent + line for line in self._references(part))
                if is_detailed(part):
                    yield from (indent + line for line in self._around(_name(part), part.ids.stop - 1))
            elif isinstance(part, ScopeStart):
                yield f"{indent}subgraph {names[place]} {{"
                yield f'{indent}  graph {self.boxes.cluster(part.scope, part.level)[:-1]} labelloc="t" margin=7]'
                level += 1
            else:
                yield f"{indent}}}"
            yield from ("}" for group in self.drawing.columns for run in group if run.stop == place + 1)

    def _places(self) -> list[int]:
        """Return in which order parts are written: of what is beside each other the lowest row first."""
        places = list(range(len(self.drawing.parts)))
        is_sideways = self.options.direction in ("LR", "RL")
        mirrored = [group for number, group in enumerate(self.drawing.columns)
                    if is_sideways or number in self.drawing.mirrored]  # fmt: skip
        for group in sorted(mirrored, key=lambda group: group[0].start - group[-1].stop):
            length = group[-1].stop - group[0].start
            start = min(places.index(place) for place in range(group[0].start, group[-1].stop))
            inside = places[start : start + length]
            runs = [[place for place in inside if place in run] for run in group]
            places[start : start + length] = [place for run in reversed(runs) for place in run]
        return places

    def _columns_from(self, place: int) -> Iterator[str]:
        """Begin the columns that begin at a part, the outer one first."""
        runs = [(run, _column(group, number)) for group, runs in enumerate(self.drawing.columns)
                for number, run in enumerate(runs) if run.start == place]  # fmt: skip
        for _, name in sorted(runs, key=lambda run: -run[0].stop):
            yield f'subgraph {name} {{ graph [label="" style="invis" margin={MARGIN}]'
        if place == 0 and self._has_columns_outside():
            yield from self._roots()

    def _cut_edges(self, box: Box) -> Iterator[str]:
        """Write the ends of edges that the focus has cut: one above a box, one below it."""
        came, lead = (0, 0) if self.options.cut is None else self.options.cut.num_lost(box.ids)
        name = _name(box)
        line: dict[str, str | float] = {"color": self.palette.cut, "style": "dashed"}
        if came:
            yield f"{name}_came {self.chips.cut(came)}"
            yield _edge(f"{name}_came", name, line)
        if lead:
            last = box.ids.stop - 1
            places = lost_places(self.options.cut, last) if is_detailed(box) else ()
            label = self._label(self.graph.nodes[last], places[0], 0) if len(places) == 1 else {}
            yield f"{name}_lead {self.chips.cut(lead)}"
            yield _edge(name, f"{name}_lead", {**line, **label})

    def _references(self, box: Box) -> Iterator[str]:
        """Write the targets of edges that are not drawn as lines: NOTE [Users of one node]."""
        for arrow in self.references.get(box.ids.start, ()):
            head = self.drawing.boxes[arrow.head]
            end = f"{_name(box)}_to{head.ids.start}_{arrow.position or 0}"
            yield f"{end} {self.chips.reference(head.ids.start)}"
            yield _edge(_name(box), end, self._arrow_values(arrow))

    def _around(self, name: str, node_id: int) -> Iterator[str]:
        """Write what is attached to a node, or to the last node of a chain: leaves, None edges, saved tensors."""
        node = self.graph.nodes[node_id]
        if not self.options.is_compact:
            yield from self._leaves(name, node)
        if self.options.none_edges:
            lost = lost_places(self.options.cut, node_id)
            nones = [place for place, edge in enumerate(node.next_edges) if edge is None and place not in lost]
            for position in nones[:MAX_CHIPS]:
                end = f"{name}_none{position}"
                yield f"{end} {attributes(shape='point', width=0.06, tooltip='None')}"
                yield _edge(name, end, self._label(node, position, 0))
        if self.options.saved:
            tensors = [value for value in node.saved if value.kind == "tensor"]
            for number, value in enumerate(tensors[:MAX_CHIPS]):
                yield f"{name}_saved{number} {self.chips.saved(value)}"
                yield f"{name} -> {name}_saved{number} {attributes(style='dotted', arrowhead='none')}"

    def _leaves(self, name: str, node: Node) -> Iterator[str]:
        uses = [
            (position, edge.next_node)
            for position, edge in enumerate(node.next_edges)
            if edge is not None and self._is_leaf(edge.next_node)
        ]
        distinct = leaves_of(self.graph, node)
        shown = distinct if len(distinct) <= MAX_CHIPS else distinct[: MAX_CHIPS - 1]
        for leaf in shown:
            yield f"{name}_leaf{leaf} {self.chips.leaf(leaf, node.module)}"
        for position, leaf in uses:
            if leaf in shown:
                yield _edge(name, f"{name}_leaf{leaf}", self._label(node, position, 0))
        if len(shown) < len(distinct):
            yield f"{name}_leaves {self.chips.more_leaves(len(distinct) - len(shown))}"
            others = sum(leaf not in shown for _, leaf in uses)
            yield f"{name} -> {name}_leaves {attributes(label=f' {TIMES}{others}')}"

    def _arrow(self, arrow: Arrow) -> str:
        tail, head = self.drawing.boxes[arrow.tail], self.drawing.boxes[arrow.head]
        values = self._arrow_values(arrow)
        if self._is_turned(arrow.tail, arrow.head):
            return _edge(
                _name(head), _name(tail), {PORTS.get(name, name): value for name, value in values.items()} | dict(BACK)
            )
        return _edge(_name(tail), _name(head), values)

    def _arrow_values(self, arrow: Arrow) -> dict[str, str | float]:
        tail = self.drawing.boxes[arrow.tail]
        values: dict[str, str | float] = {"weight": TRUNK_WEIGHT} if arrow.is_trunk else {}
        values |= {"minlen": arrow.length} if arrow.length > 1 else {}
        if arrow.position is not None:
            values |= self._label(self.graph.nodes[tail.ids.stop - 1], arrow.position, arrow.input_nr)
        if arrow.num_edges > 1:
            names = self._names(self.graph.nodes[tail.ids.stop - 1], arrow) if is_detailed(tail) else ""
            values |= {"label": quoted(f" {names} ") if names else f" {TIMES}{arrow.num_edges:,}", "penwidth": 1.6}
        if places := self._crossed(arrow):
            color = self.palette.skip
            label = quoted(f" {places} ")
            values |= {"label": label, "color": color, "fontcolor": color, "penwidth": 1.6, "style": "bold"}
        if arrow.is_skip:
            side, color = SIDES[self.options.direction], self.palette.skip
            values |= {"label": " skip ", "tailport": side, "color": color, "fontcolor": color, "penwidth": 1.3}
            # A wide box beside no other one would send the arc out of the frame.
            values |= {} if is_detailed(self.drawing.boxes[arrow.head]) else {"headport": side}
        if self.options.is_compact and "label" in values:
            values[KEPT] = values.pop("label")
        return values

    def _crossed(self, arrow: Arrow) -> str:
        """Name the devices that an arrow leads from and to, if it crosses from one to another."""
        tails, heads = self.drawing.boxes[arrow.tail].ids, self.drawing.boxes[arrow.head].ids
        found = [one for tail in tails if tail in self.devices_crossed
                 for one in self.devices_crossed[tail] if one.head in heads]  # fmt: skip
        return ", ".join(dict.fromkeys(f"{one.start} → {one.end}" for one in found)) if self.devices_crossed else ""

    def _names(self, node: Node, arrow: Arrow) -> str:
        """Name the forward arguments of many edges from one node: `tensors[1-198]`."""
        if not self.options.argument_names:
            return ""
        heads = self.drawing.boxes[arrow.head].ids
        places = [place for place, edge in enumerate(node.next_edges) if edge is not None and edge.next_node in heads]
        return join_names([argument_name(self.graph, node, place) or "" for place in places])

    def _label(self, node: Node, position: int, input_nr: int) -> dict[str, str | float]:
        """Name the forward argument if a node has several, and the receiving input if it is not the first."""
        is_named = self.options.argument_names and len(node.next_edges) > 1
        name = argument_name(self.graph, node, position) if is_named else None
        return _edge_label(name or "", input_nr)

    def _is_leaf(self, node_id: int) -> bool:
        return self.graph.nodes[node_id].kind == "accumulate_grad"

    def _name_of(self, node_id: int) -> str:
        return f"n{node_id}" if self._is_leaf(node_id) else _name(self.drawing.boxes[self.drawing.box_of[node_id]])


def _column(group: int, number: int) -> str:
    return f"cluster_of{group}_{number}"


def _name(box: Box) -> str:
    return f"n{box.ids.start}" if box.kind == "node" else f"{box.kind}{box.ids.start}"


def _edge(tail: str, head: str, values: dict[str, str | float]) -> str:
    return f"{tail} -> {head} {attributes(**values)}" if values else f"{tail} -> {head}"


def _edge_label(name: str, input_nr: int) -> dict[str, str | float]:
    words = ", ".join(filter(None, (name, f"input_nr {input_nr}" if input_nr else "")))
    return {"label": quoted(f" {words} ")} if words else {}
