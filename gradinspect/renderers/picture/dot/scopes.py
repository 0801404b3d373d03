"""Names and sizes of scopes in a picture.

What comes in: scopes of a folding. What goes out: pieces of HTML-like labels.
"""

from collections.abc import Sequence
from itertools import accumulate

from gradinspect.analyses.memory.odd_copies import OddCopies
from gradinspect.analyses.memory.saved_storages import held_bytes_by_node
from gradinspect.analyses.structure.call_names import short_name
from gradinspect.analyses.structure.copy_ranges import name_of_blocks
from gradinspect.analyses.structure.folding import Scope, place_of_call
from gradinspect.analyses.structure.name_folding import fold_name
from gradinspect.graph import Graph, ModuleCall
from gradinspect.renderers.picture.colors.palettes import Palette
from gradinspect.renderers.picture.dot.text import html, small
from gradinspect.units import format_bytes, format_count

TIMES = "×"
BAR_WIDTH, BAR_HEIGHT = 64, 4  # points; the narrowest box is wider


def share_bar(share: float, palette: Palette, width: int = BAR_WIDTH) -> str:
    """Draw a share as a bar on a pale track of 100%; nothing if it would be too short to see."""
    filled = min(round(share * width), width)
    parts = ((filled, palette.closed_line), (width - filled, palette.track))
    cells = "".join(
        f'<TD FIXEDSIZE="TRUE" WIDTH="{cell}" HEIGHT="{BAR_HEIGHT}" BGCOLOR="{color}"></TD>'
        for cell, color in parts
        if cell
    )
    size = f'FIXEDSIZE="TRUE" WIDTH="{width}" HEIGHT="{BAR_HEIGHT}"'
    table = f'<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0" {size}><TR>{cells}</TR></TABLE>'
    return table if filled else ""


class ScopeLabels:
    """Names and measures the scopes of one graph."""

    def __init__(self, graph: Graph, palette: Palette) -> None:
        """Prepare for a graph."""
        self.graph = graph
        self.palette = palette
        held = held_bytes_by_node(graph)
        self.held_before = list(accumulate(held, initial=0))
        self.odd_copies = OddCopies(graph, held)

    def name(self, scope: Scope) -> str:
        """Name a module call by path and class, a repeat by its first and last call and their number."""
        if scope.module is not None:
            call = self.graph.modules[scope.module]
            return f"{self._path(call)} {self._class_of(call)}" if call.path else f"<B>{html(call.class_name)}</B>"
        times = f"<B>{TIMES}{len(scope.copies) + 1:,}</B>"
        place = place_of_call(scope)
        between = self.between((scope.items, *scope.copies))
        first = None if place is None else self._call_of(scope.items[place : place + 1])
        around = "with " if len(scope.items) > 1 else ""
        if between and first:
            return f"{around}{between} {self._class_of(first)} {times}"
        return f"{self.parts(scope) or self._ends(scope.items)} {times}".strip()

    def parts(self, scope: Scope, copies: slice = slice(None)) -> str:
        """Name the calls that copies of several are made of, or those of some copies."""
        name = None if place_of_call(scope) is not None else name_of_blocks(self.graph, scope, copies)
        return ", ".join(map(self._dotted, name.split(", "))) if name else ""

    def _ends(self, items: Sequence[int | Scope]) -> str:
        """Name the first and the last node of a copy without a module: `Transpose … View`; "" if it has no node."""
        nodes = [self.graph.nodes[item] for item in items if not isinstance(item, Scope)]
        classes = [node.name.partition("Backward")[0] for node in (*nodes[:1], *nodes[-1:])]
        return " … ".join(map(html, dict.fromkeys(classes)))

    def between(self, bodies: Sequence[Sequence[int | Scope]]) -> str:
        """Name the calls of a repeat, by their indices or the first and last; "" if a copy has several, or none."""
        bodies = [[item for item in body if isinstance(item, Scope) and item.kind == "module"] for body in bodies]
        calls = [call for body in bodies if (call := self._call_of(body)) is not None]
        if len(calls) < len(bodies):
            return ""
        fold = fold_name([short_name(call.path, None, self.graph.model_name) for call in calls])
        if fold is not None:
            return self._dotted(fold)
        ends = dict.fromkeys(map(self._path, (calls[0], calls[-1])))
        return " … ".join(ends)

    def size_of_open(self, scope: Scope) -> str:
        """Describe the size of an expanded scope, whose leaves are visible."""
        times = len(scope.copies) + 1
        size = format_count(scope.num_nodes // times, "node") + (" each" if times > 1 else "")
        return size + (f" · {format_bytes(scope.held_bytes)}" if scope.held_bytes else "")

    def size(self, ids: range, *, with_nodes: bool = True) -> str:
        """Describe the size of a collapsed box."""
        leaves = {
            edge.next_node
            for node_id in ids
            for edge in self.graph.nodes[node_id].next_edges
            if edge is not None and self.graph.nodes[edge.next_node].kind == "accumulate_grad"
        }
        held = self.held_bytes(ids)
        facts = (
            self.num_nodes(ids) if with_nodes else "",
            format_count(len(leaves), "leaf", "leaves") if leaves else "",
            format_bytes(held) if held else "",
        )
        return " · ".join(filter(None, facts))

    def num_nodes(self, ids: range) -> str:
        """Count the nodes of a range that are not AccumulateGrad."""
        return format_count(sum(self.graph.nodes[node].kind != "accumulate_grad" for node in ids), "node")

    def bar(self, ids: range) -> str:
        """Draw the share of all bytes held as a bar; nothing if it would be too short to see."""
        return share_bar(self.held_bytes(ids) / max(self.held_before[-1], 1), self.palette)

    def held_bytes(self, ids: range) -> int:
        """Sum the bytes that are held by a range of nodes."""
        return self.held_before[ids.stop] - self.held_before[ids.start]

    def _call_of(self, items: Sequence[int | Scope]) -> ModuleCall | None:
        first = items[0] if len(items) == 1 else None
        is_call = isinstance(first, Scope) and first.module is not None
        return self.graph.modules[first.module] if is_call else None  # type: ignore[union-attr, index]

    def _path(self, call: ModuleCall) -> str:
        """Write a module's path with its last part in bold, and the call number if it is not the first."""
        number = small(f" call {call.call}", self.palette.quiet) if call.call > 1 else ""
        return self._dotted(short_name(call.path, None, self.graph.model_name)) + number

    def _dotted(self, path: str) -> str:
        outer, dot, name = path.rpartition(".")
        around = small(html(outer) + dot, self.palette.quiet, 9) if outer else ""
        return f"{around}<B>{html(name)}</B>"

    def _class_of(self, call: ModuleCall) -> str:
        return small(html(call.class_name), self.palette.soft, 9)
