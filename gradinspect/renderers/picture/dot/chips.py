"""The small marks beside boxes: leaves, roots, saved tensors, cut edges.

What comes in: records of the graph. What goes out: labels and colors, as DOT attribute lists.
"""

import re
from collections.abc import Sequence
from html import unescape
from typing import TypeAlias

from gradinspect.analyses.structure.call_names import leaf_inside
from gradinspect.analyses.structure.cut import uses_in_whole
from gradinspect.graph import Graph, Leaf, Node, Root, SavedValue
from gradinspect.renderers.picture.colors.looks import Look
from gradinspect.renderers.picture.dot.scene import Scene
from gradinspect.renderers.picture.dot.text import attributes, boxed, html, quoted, small, tooltip, without_colors
from gradinspect.renderers.picture.dot.tooltips import leaf_tooltip, saved_tooltip
from gradinspect.renderers.picture.plan.parts import MAX_CHIPS
from gradinspect.renderers.picture.text_width import text_width
from gradinspect.units import format_bytes, format_count, format_tensor

MAX_CHIP_NAME = 28
MAX_ROW = 165.0  # points: chips that fit are side by side
Chip: TypeAlias = tuple[str, str, str]  # the label, the fill, the border


class Chips:
    """Writes the attributes of marks beside boxes."""

    def __init__(self, scene: Scene) -> None:
        """Prepare for a picture."""
        self.scene = scene
        self.palette = scene.palette
        self.uses = uses_in_whole(scene.graph, scene.options.cut)

    def leaf(self, leaf_node: int, module: int | None = None) -> str:
        """Write a leaf with its AccumulateGrad node, drawn beside a node that uses it.

        Args:
            leaf_node: The AccumulateGrad node.
            module: The module call of the node that uses it, which names it or has a frame around it.
        """
        label = self._table(*self._label(leaf_node, module))
        return attributes(shape="plain", label=f"<{label}>", tooltip=self.words(leaf_node))

    def rows(self, node: Node) -> list[str]:
        """Write the leaves that a node leads to as rows of its box, the first few of many."""
        leaves = leaves_of(self.scene.graph, node)
        shown = leaves if len(leaves) <= MAX_CHIPS else leaves[: MAX_CHIPS - 1]
        labels = [self._label(leaf, node.module) for leaf in shown]
        if len(shown) < len(leaves):
            labels.append((_count_more(len(leaves) - len(shown)), self.palette.leaf, self.palette.leaf_line))
        return ["".join(map(self._cell, row)) for row in _packed(labels)]

    def _cell(self, chip: Chip) -> str:
        label, fill, line = chip
        ink = self.palette.ink if self.scene.coloring is None else Look(fill, "").ink
        words = f'<FONT POINT-SIZE="9" COLOR="{ink}"><B>+=</B> {label}</FONT>'
        return f'<TD BGCOLOR="{fill}" BORDER="1" COLOR="{line}">{words}</TD>'

    def _label(self, leaf_node: int, module: int | None) -> Chip:
        """Write the name of a leaf."""
        colors, look = self.palette, self._look(leaf_node)
        leaf = self.scene.graph.nodes[leaf_node].leaf
        uses = self.uses[leaf_node]
        fill, line = (colors.shared, colors.shared_line) if uses > 1 else (colors.leaf, colors.leaf_line)
        path = None if module is None else self.scene.graph.modules[module].path
        label = "leaf" if leaf is None else self._leaf_label(leaf, path)
        if uses > 1:
            label += small(f" {uses:,} uses", line)
        if look is not None:
            label = without_colors(label + (small(f" · {look.fact}", look.ink) if look.fact else ""))
            label = f'<FONT COLOR="{look.ink}">{label}</FONT>'
            fill, line = look.fill, look.line or line
        return label, fill, line

    def words(self, leaf_node: int) -> str:
        """Write the tooltip of a leaf."""
        look = self._look(leaf_node)
        number = self.scene.number(leaf_node)
        return leaf_tooltip(self.scene.graph, leaf_node, number, "" if look is None else look.words)

    def _look(self, leaf_node: int) -> Look | None:
        return None if self.scene.coloring is None else self.scene.coloring.leaf(leaf_node)

    def more_leaves(self, count: int) -> str:
        """Write the chip for the leaves beyond the first few."""
        label = self._table(_count_more(count), self.palette.leaf, self.palette.leaf_line)
        return attributes(shape="plain", label=f"<{label}>", tooltip=quoted(_count_more(count)))

    def root(self, root: Root) -> str:
        """Write the mark on a root."""
        name = f"<B>{html(root.name)}</B>" if root.name else "<B>root</B>"
        shape = "" if root.info is None else format_tensor(root.info)
        words = tooltip(f"root {root.name or ''}".rstrip(), *filter(None, [shape]))
        return self._root(f"{name} {html(shape)}" if shape else name, words)

    def several_roots(self, count: int) -> str:
        """Write one mark for many roots of one box."""
        return self._root(f"{count:,} roots", quoted("start of backward"))

    def reference(self, node_id: int) -> str:
        """Write the target of an edge that is not drawn as a line."""
        name = self.scene.graph.nodes[node_id].name
        label = small(f"&#8594; #{self.scene.number(node_id)} {html(name, MAX_CHIP_NAME)}", self.palette.soft)
        return boxed([label], shape="plain", style="", tooltip=quoted(f"#{self.scene.number(node_id)} {name}"))

    def saved(self, value: SavedValue) -> str:
        """Write the note of a saved tensor."""
        index = "" if value.index is None else f"[{value.index}]"
        facts = [f"<B>{html(value.name.removeprefix('_saved_'))}{index}</B>"]
        if value.tensor is not None:
            facts.append(html(format_tensor(value.tensor.info)))
            facts.append(format_bytes(value.tensor.num_bytes))
        facts += [value.status] if value.status not in (None, "live") else []
        label = small(" ".join(facts), self.palette.soft)
        return boxed(
            [label],
            shape="note",
            style="filled",
            fillcolor=self.palette.card,
            tooltip=saved_tooltip(self.scene.graph, value),
        )

    def cut(self, count: int) -> str:
        """Write the end of edges that the focus has cut."""
        label = small(f"{format_count(count, 'edge')} cut", self.palette.cut)
        return boxed([label], shape="plain", style="", tooltip=quoted("leads to or comes from hidden nodes"))

    def _root(self, label: str, words: str) -> str:
        fill, ink = self.palette.root, self.palette.root_ink
        looks = {"shape": "invhouse", "style": "filled", "fillcolor": fill, "fontcolor": ink, "margin": "0,0.02"}
        return boxed([label], **looks, tooltip=words)

    def _leaf_label(self, leaf: Leaf, path: str | None) -> str:
        name = f"<B>{_dotted(leaf_inside(self.scene.graph, leaf, path))}</B> " if leaf.name else ""
        return name + small(html(format_tensor(leaf.info)), self.palette.soft)

    def _table(self, label: str, fill: str, line: str) -> str:
        mark = f'<FONT COLOR="{self.palette.accumulate_ink}" POINT-SIZE="8"><B>+=</B></FONT>'
        cells = f'<TD BGCOLOR="{self.palette.accumulate}">{mark}</TD><TD BGCOLOR="{fill}">{label}</TD>'
        table = f'<TABLE BORDER="0" CELLBORDER="1" CELLSPACING="0" CELLPADDING="2" COLOR="{line}">'
        return f"{table}<TR>{cells}</TR></TABLE>"


def leaves_of(graph: Graph, node: Node) -> list[int]:
    """Return the AccumulateGrad nodes that a node leads to, each once."""
    heads = (edge.next_node for edge in node.next_edges if edge is not None)
    return [head for head in dict.fromkeys(heads) if graph.nodes[head].kind == "accumulate_grad"]


def _packed(chips: Sequence[Chip]) -> list[list[Chip]]:
    """Put short chips side by side."""
    rows: list[list[Chip]] = []
    room = 0.0
    for chip in chips:
        width = text_width("+= " + unescape(re.sub("<[^>]*>", "", chip[0])), 8)
        if not rows or width > room:
            rows.append([])
            room = MAX_ROW
        rows[-1].append(chip)
        room -= width
    return rows


def _count_more(count: int) -> str:
    return f"{count:,} more {'leaf' if count == 1 else 'leaves'}"


def _dotted(name: str) -> str:
    """Shorten a dotted name from the left: its last parts are the most specific."""
    while len(name) > MAX_CHIP_NAME and "." in name.lstrip("…."):
        name = "…." + name.lstrip("….").split(".", 1)[1]
    return html(name, MAX_CHIP_NAME)
