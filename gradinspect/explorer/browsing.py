"""The state of browsing an outline: what is expanded, and where the cursor is. No text, no screen.

NOTE [Rows as needed]
Rows are generated only up to the last visible one, so expanding something in a graph of 100,000 nodes costs one
screen. Only going to the last row generates all of them.
"""

from collections.abc import Iterator, Sequence
from itertools import count
from typing import NamedTuple

from gradinspect.analyses.structure.expansion import Around, readable_depth, scopes_around
from gradinspect.analyses.structure.flow import Flow
from gradinspect.analyses.structure.folding import Item, Scope, fold_graph, node_ids
from gradinspect.analyses.structure.outline import OutlineBuilder, build_rows
from gradinspect.analyses.structure.outline_rows import Row
from gradinspect.explorer.expansion import Expansion
from gradinspect.graph import Graph

ALL_LEVELS = 1_000_000


class RowPosition(NamedTuple):
    """A row that can be found again after others are expanded or collapsed."""

    item: Item
    below: int  # rows below the row of the item


class Browser:
    """The rows of one graph: which scopes are expanded, which copy of each repeat is shown, where the cursor is."""

    def __init__(self, graph: Graph, depth: int | None = 0) -> None:
        """Fold the graph, and expand it to a depth; None: NOTE [About forty boxes] in `expansion`."""
        self.graph = graph
        self.folded = fold_graph(graph)
        self.cursor = 0
        self._expansion = Expansion(readable_depth(self.folded) if depth is None else depth)
        self._flows: dict[tuple[int, int, range], Flow] = {}
        self._first_user: dict[int, int] = {}
        for node_id in reversed(range(len(graph.nodes))):
            for edge in graph.nodes[node_id].next_edges:
                if edge is not None:
                    self._first_user[edge.next_node] = node_id
        self._regenerate()

    # Rows.

    def rows(self, start: int, number: int) -> Sequence[Row]:
        """Return some rows; fewer at the end of the outline."""
        self._generate_until(start + number)
        return self._rows[start : start + number]

    @property
    def row(self) -> Row | None:
        """The row with the cursor; None for an empty graph."""
        return next(iter(self.rows(self.cursor, 1)), None)

    @property
    def item(self) -> Item | None:
        """The item of the row with the cursor: a scope or a node; for a reference, the node it refers to."""
        row = self.row
        if row is None:
            return None
        if row.scope is not None:
            return row.scope
        return row.nodes[0] if row.nodes else row.targets[0].edge.next_node

    # Moving.

    def move(self, by: int) -> None:
        """Move the cursor by some rows, within the outline."""
        self.move_to(self.cursor + by)

    def move_to(self, place: int) -> None:
        """Move the cursor to a row, or to the last one."""
        self._generate_until(place + 1)
        self.cursor = max(0, min(place, len(self._rows) - 1))

    def move_to_end(self) -> None:
        """Move the cursor to the last row."""
        self._generate_until(None)
        self.cursor = max(0, len(self._rows) - 1)

    def move_out(self) -> bool:
        """Move the cursor to the expanded scope around it; return whether there is one."""
        place = self._row_around(self.cursor)
        if place is not None:
            self.cursor = place
        return place is not None

    # Expanding and collapsing.

    def open(self) -> bool:
        """Expand the scope under the cursor; return whether it was collapsed."""
        return self._set_open(is_open=True)

    def close(self) -> bool:
        """Collapse the scope under the cursor; return whether it was expanded."""
        return self._set_open(is_open=False)

    def _set_open(self, *, is_open: bool) -> bool:
        row = self.row
        if row is None or row.scope is None or row.is_open == is_open:
            return False
        self._expansion.set_open(row.scope, _level(row), is_open=is_open)
        self._regenerate()
        return True

    def open_all(self) -> None:
        """Expand everything, with one copy of each repeat."""
        self._open_to(ALL_LEVELS)

    def close_all(self) -> None:
        """Collapse everything."""
        self._open_to(0)

    def _open_to(self, depth: int) -> None:
        place = self.here()
        self._expansion.open_to(depth)
        self._regenerate()
        if place is not None:
            self._find(place.item)

    # Jumping.

    def here(self) -> RowPosition | None:
        """Return the row with the cursor, relative to the closest row above it whose item is unique."""
        for below, row in enumerate(reversed(self.rows(0, self.cursor + 1))):
            item = row.scope if row.scope is not None else next(iter(row.nodes), None)
            if item is not None:
                return RowPosition(item, below)
        return None

    def go(self, place: RowPosition) -> None:
        """Move the cursor back to an earlier row."""
        self.reveal(place.item)
        self.move(place.below)

    def reveal(self, item: Item) -> None:
        """Expand the scopes around a node or scope, select its copies, and move the cursor to it."""
        first = node_ids(item).start
        if isinstance(item, int) and self.graph.nodes[item].kind == "accumulate_grad":
            uses = [place for place, row in enumerate(self._rows) if self._is_about(row, item)]
            if uses:
                self.cursor = min(uses, key=lambda place: abs(place - self.cursor))
                return
            first = self._first_user.get(item, item)
        for around in scopes_around(self.folded, first):
            if around.scope is item:
                break
            self._show(around)
        self._find(item)

    def reveal_call(self, call: int, node_id: int) -> None:
        """Move the cursor to a module call, given one of its nodes."""
        target: Item = node_id
        for around in scopes_around(self.folded, node_id):
            if around.scope.module == call:
                target = around.scope
                break
            self._show(around)
            body = (around.scope.items, *around.scope.copies)[around.copy]
            if isinstance(body[0], Scope) and body[0].module == call and len(body) == 1:
                target = around.scope
                break
        self._find(target)

    def shift_copy(self, by: int) -> bool:
        """Show another copy of the repeat around the cursor, at the same row; return whether there is one."""
        place = self.cursor if self.row is not None else None
        while place is not None:
            row = self._rows[place]
            if row.scope is not None and row.copy is not None:
                return self._shift(row, row.scope, row.copy, by)
            place = self._row_around(place)
        return False

    def _shift(self, row: Row, scope: Scope, copy: int, by: int) -> bool:
        wanted = max(0, min(copy + by, len(scope.copies)))
        if wanted == copy:
            return False
        self._expansion.move(scope, _level(row), wanted)
        self._regenerate()
        self.move_to(self.cursor)  # the last copy may have fewer rows
        return True

    # Parts.

    def _show(self, around: Around) -> None:
        """Expand a scope at one copy, and regenerate rows only if that changed something."""
        if self._expansion.show(around.scope, around.level, around.copy):
            self._regenerate()

    def _regenerate(self) -> None:
        builder = OutlineBuilder(self.graph, self._expansion.is_open, self._expansion.copy_of, self._flow)
        self._rows: list[Row] = []
        self._coming: Iterator[Row] = build_rows(builder, self.folded)

    def _flow(self, graph: Graph, items: Sequence[Item], continuation: range) -> Flow:
        key = (id(items), len(items), continuation)  # items live as long as the folding
        if key not in self._flows:
            self._flows[key] = Flow(graph, items, continuation)
        return self._flows[key]

    def _generate_until(self, number: int | None) -> None:
        while number is None or len(self._rows) < number:
            row = next(self._coming, None)
            if row is None:
                return
            self._rows.append(row)

    def _row_around(self, place: int) -> int | None:
        level = _level(self._rows[place]) if self._rows else 0
        for above in reversed(range(place)):
            row = self._rows[above]
            if row.is_open and _level(row) < level:
                return above
        return None

    def _find(self, item: Item) -> None:
        """Move the cursor to the row of an item, or to the collapsed scope around it."""
        for place in count():
            self._generate_until(place + 1)
            if place == len(self._rows):  # a leaf that no node leads to
                self.move_to(self.cursor)
                return
            if self._is_about(self._rows[place], item):
                self.cursor = place
                return

    def _is_about(self, row: Row, item: Item) -> bool:
        if row.scope is item or item in row.nodes:
            return True
        if isinstance(item, int) and self.graph.nodes[item].kind == "accumulate_grad":
            return row.scope is None and any(link.edge.next_node == item for link in row.targets)
        return row.scope is not None and not row.is_open and node_ids(item).start in node_ids(row.scope)


def _level(row: Row) -> int:
    """Count the expanded scopes around a row."""
    return row.guides.count("scope")
