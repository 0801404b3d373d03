"""The boxes of a picture that is too large for Graphviz: their text and their size.

What comes in: the boxes of a `Drawing`. What goes out: text, sizes and SVG elements, positioned by the caller.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from gradinspect.analyses.memory.saved_storages import held_bytes_by_node
from gradinspect.analyses.structure.call_names import leaf_inside, short_name
from gradinspect.analyses.structure.cut import uses_in_whole
from gradinspect.analyses.structure.folding import Scope
from gradinspect.analyses.structure.node_names import function_words
from gradinspect.analyses.structure.shape_chains import chain_title
from gradinspect.graph import ModuleCall, Node
from gradinspect.renderers.picture.dot.scene import Scene
from gradinspect.renderers.picture.dot.text import shorten
from gradinspect.renderers.picture.dot.tooltips import node_lines
from gradinspect.renderers.picture.plan.parts import MAX_CHIPS, Box
from gradinspect.renderers.picture.rows.layout import Room
from gradinspect.renderers.picture.rows.nesting import ScopeRoom
from gradinspect.renderers.picture.text_width import BOLD, text_width
from gradinspect.units import format_bytes, format_count, format_tensor

FONT_SIZE, SMALL_SIZE, LINE = 10.0, 8.0, 12.0
PAD, CHIP_GAP = 8.0, 8.0
MAX_CHIP = 34  # characters


class BoxText(NamedTuple):
    """The text of a box."""

    lines: tuple[str, ...]  # one of them, the title, is larger
    title: int  # index of the title
    chips: tuple[tuple[str, bool], ...]  # leaves beside it, and whether each is used elsewhere too


class LargeBoxes:
    """Writes the boxes of one picture."""

    def __init__(self, scene: Scene) -> None:
        """Prepare for a picture."""
        self.scene = scene
        self.uses = uses_in_whole(scene.graph, scene.options.cut)
        self.saved = held_bytes_by_node(scene.graph)

    def words(self, box: Box) -> BoxText:
        """Return the text of a box."""
        graph = self.scene.graph
        nodes = [graph.nodes[node_id] for node_id in box.ids]
        call = None if box.scope is None or box.scope.module is None else graph.modules[box.scope.module]
        over = () if call is None else (shorten(self._name(call)),)
        title = shorten(chain_title(nodes)) if len(nodes) > 1 else shorten(nodes[0].name)
        saved = sum(self.saved[node_id] for node_id in box.ids)
        facts = [
            _output(nodes[0]),
            f"{format_bytes(saved)} held" if saved else "",
            function_words(graph, box.ids.start) or "",
        ]
        under = " · ".join((f"#{self.scene.number(box.ids.start)}", *filter(None, facts)))
        return BoxText((*over, title, shorten(under)), len(over), tuple(self._chips(nodes[-1])))

    def _chips(self, node: Node) -> Iterator[tuple[str, bool]]:
        graph = self.scene.graph
        leaves = [edge.next_node for edge in node.next_edges if edge is not None]
        leaves = [leaf for leaf in dict.fromkeys(leaves) if graph.nodes[leaf].kind == "accumulate_grad"]
        path = None if node.module is None else graph.modules[node.module].path
        for number in leaves if len(leaves) <= MAX_CHIPS else leaves[: MAX_CHIPS - 1]:
            leaf = graph.nodes[number].leaf
            name = "" if leaf is None else leaf_inside(graph, leaf, path)
            words = "leaf" if leaf is None else f"{name} {format_tensor(leaf.info)}".strip()
            yield f"+= {shorten(words, MAX_CHIP)}", self.uses[number] > 1
        if len(leaves) > MAX_CHIPS:
            yield f"+= {len(leaves) - MAX_CHIPS + 1} more leaves", False

    def frame(self, words: BoxText) -> Room:
        """Measure a box without its chips."""
        width = max(
            text_width(line, FONT_SIZE) * BOLD if place == words.title else text_width(line, SMALL_SIZE)
            for place, line in enumerate(words.lines)
        )
        return Room(width / 2 + PAD, width / 2 + PAD, LINE * len(words.lines) + PAD)

    def size(self, words: BoxText) -> Room:
        """Measure a box with its chips, relative to the middle of its frame."""
        frame = self.frame(words)
        chips = max((text_width(chip, SMALL_SIZE) + CHIP_GAP + PAD for chip, _ in words.chips), default=0.0)
        return Room(frame.left, frame.right + chips, max(frame.height, LINE * len(words.chips)))

    def element(self, box: Box, words: BoxText, left: float, top: float) -> str:
        """Write a box with its chips."""
        frame = self.frame(words)
        look = self.scene.look(box.ids)
        ink = "" if look is None else f' style="fill:{look.ink}"'  # a style, as attributes yield to the style sheet
        fill = "" if look is None else f' style="fill:{look.fill}"'
        number = self.scene.number(box.ids.start)
        title, *facts = node_lines(self.scene.graph, box.ids.start, number, "" if look is None else look.words)
        lines = "".join(
            f'<text x="{frame.left:.0f}" y="{LINE * place + 13:.0f}" '
            f'class="{"t" if place == words.title else "s"}"{ink}>{escape(line)}</text>'
            for place, line in enumerate(words.lines)
        )
        described = f"<title>{plain(title)}</title>" + (f"<desc>{plain(*facts)}</desc>" if facts else "")
        rect = f'<rect width="{frame.width:.0f}" height="{frame.height:.0f}" rx="5"{fill}/>'
        body = self._linked(self.scene.graph.nodes[box.ids.start], rect + lines)
        chips = "".join(_chip(chip, frame.width + CHIP_GAP, place) for place, chip in enumerate(words.chips))
        return f'<g id="n{number}" transform="translate({left:.0f} {top:.0f})">{described}{body}{chips}</g>\n'

    def _linked(self, node: Node, body: str) -> str:
        links = self.scene.options.links
        url = links[node.frame] if links and node.frame is not None else None
        return body if url is None else f'<a href={quoteattr(url)} target="_blank">{body}</a>'

    def frame_title(self, scope: Scope) -> tuple[str, str]:
        """Return the title of a frame, and its size."""
        call = None if scope.module is None else self.scene.graph.modules[scope.module]
        if call is None:
            return "repeated block", format_count(scope.num_nodes, "node")
        number = f"call {call.call}" if call.call > 1 else ""
        held = f"{format_bytes(scope.held_bytes)} held" if scope.held_bytes else ""
        facts = (call.class_name if call.path else "", number, format_count(scope.num_nodes, "node"), held)
        return shorten(self._name(call)), shorten(" · ".join(filter(None, facts)))

    def _name(self, call: ModuleCall) -> str:
        return short_name(call.path, None, self.scene.graph.model_name) if call.path else call.class_name

    def title_width(self, scope: Scope) -> float:
        """Measure the title of a frame."""
        title, facts = self.frame_title(scope)
        return text_width(title, FONT_SIZE) * BOLD + text_width(facts, SMALL_SIZE) + 3 * PAD

    def frame_element(self, frame: ScopeRoom) -> str:
        """Write a frame."""
        return (
            f'<rect class="f" x="{frame.left:.0f}" y="{frame.top:.0f}" width="{frame.width:.0f}" '
            f'height="{frame.height:.0f}" rx="6" style="fill:{self._frame_fill(frame)}"/>\n'
        )

    def title_element(self, frame: ScopeRoom) -> str:
        """Write the title of a frame, on a strip in its color: arrows into the frame are below it."""
        title, facts = self.frame_title(frame.scope)
        left, top, width = frame.left + PAD, frame.top + 12, self.title_width(frame.scope) - 2 * PAD
        strip = f'<rect x="{left:.0f}" y="{top - 9:.0f}" width="{width:.0f}" height="{LINE:.0f}"'
        return (
            f'{strip} style="fill:{self._frame_fill(frame)};stroke:none"/><text class="c" x="{left:.0f}" y="{top:.0f}">'
            f'<tspan class="b">{escape(title)}</tspan>  {escape(facts)}</text>\n'
        )

    def _frame_fill(self, frame: ScopeRoom) -> str:
        fills = self.scene.palette.clusters if self.scene.coloring is None else self.scene.palette.plain_clusters
        return fills[min(frame.level, len(fills) - 1)]


def plain(*lines: str) -> str:
    """Write lines as the text of an element, shortened and without control characters."""
    return escape("\n".join(shorten(line, 160) for line in lines))


def _chip(chip: tuple[str, bool], left: float, place: int) -> str:
    text, is_shared = chip
    width = text_width(text, SMALL_SIZE) + PAD
    kind = "m" if is_shared else "l"
    return (
        f'<rect class="{kind}" x="{left:.0f}" y="{LINE * place + 1:.0f}" width="{width:.0f}" height="{LINE - 1:.0f}"/>'
        f'<text class="c" x="{left + PAD / 2:.0f}" y="{LINE * place + 9:.0f}">{escape(text)}</text>'
    )


def _output(node: Node) -> str:
    infos: Sequence[object] = node.forward_outputs
    first = next((info for info in node.forward_outputs if info is not None), None)
    if first is None:
        return ""
    return format_tensor(first) + (f" + {len(infos) - 1} more" if len(infos) > 1 else "")
