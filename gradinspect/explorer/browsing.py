"""What a reader of the outline has opened, and where he is. No text, no screen: each key of the explorer ends here.

NOTE [Rows as needed]
Rows are told up to the one that is looked at, and no further: opening something in a graph of 100,000 nodes costs what
one screen costs. Only going to the last row tells them all.
"""

from collections.abc import Iterator, Sequence
from itertools import count
from typing import NamedTuple

from gradinspect.analyses.structure.expansion import Around, depth_that_fits, scopes_around
from gradinspect.analyses.structure.flow import Flow
from gradinspect.analyses.structure.folding import Item, Scope, fold_graph, node_ids
from gradinspect.analyses.structure.outline import OutlineBuilder, tell
from gradinspect.analyses.structure.outline_rows import Row
from gradinspect.explorer.expansion import Openings
from gradinspect.graph import Graph

ALL_LEVELS = 1_000_000


class RowPosition(NamedTuple):
    """A row that can be found again when other things are open."""

    item: Item
    below: int  # rows below that of the item


class Browser:
    """The rows of one graph, with what is open, which copy of each repeat is told, and the row with the cursor."""

    def __init__(self, graph: Graph, max_rows: int = 0) -> None:
        """Fold the graph, and open what fits in so many rows."""
        self.graph = graph
        self.folded = fold_graph(graph)
        self.cursor = 0
        self._openings = Openings(depth_that_fits(graph, self.folded, max_rows))
        self._flows: dict[tuple[int, int, range], Flow] = {}
        self._first_user: dict[int, int] = {}
        for node_id in reversed(range(len(graph.nodes))):
            for edge in graph.nodes[node_id].next_edges:
                if edge is not None:
                    self._first_user[edge.next_node] = node_id
        self._tell()

    # Rows.

    def rows(self, start: int, number: int) -> Sequence[Row]:
        """Return some rows; fewer where the outline ends."""
        self._tell_until(start + number)
        return self._rows[start : start + number]

    @property
    def row(self) -> Row | None:
        """The row with the cursor; None of an empty graph."""
        return next(iter(self.rows(self.cursor, 1)), None)

    @property
    def item(self) -> Item | None:
        """What the row with the cursor is about: a scope, or a node; of a reference, the node it refers to."""
        row = self.row
        if row is None:
            return None
        if row.scope is not None:
            return row.scope
        return row.nodes[0] if row.nodes else row.way_on[0].edge.next_node

    # Moving.

    def move(self, by: int) -> None:
        """Move the cursor by so many rows, as far as there are rows."""
        self.move_to(self.cursor + by)

    def move_to(self, place: int) -> None:
        """Move the cursor to a row, or to the last."""
        self._tell_until(place + 1)
        self.cursor = max(0, min(place, len(self._rows) - 1))

    def move_to_end(self) -> None:
        """Move the cursor to the last row."""
        self._tell_until(None)
        self.cursor = max(0, len(self._rows) - 1)

    def move_out(self) -> bool:
        """Move the cursor to the open scope that it is in; tell whether there is one."""
        place = self._row_around(self.cursor)
        if place is not None:
            self.cursor = place
        return place is not None

    # Opening and closing.

    def open(self) -> bool:
        """Open the scope under the cursor; tell whether it was closed."""
        return self._set_open(is_open=True)

    def close(self) -> bool:
        """Close the scope under the cursor; tell whether it was open."""
        return self._set_open(is_open=False)

    def _set_open(self, *, is_open: bool) -> bool:
        row = self.row
        if row is None or row.scope is None or row.is_open == is_open:
            return False
        self._openings.set_open(row.scope, _level(row), is_open=is_open)
        self._tell()
        return True

    def open_all(self) -> None:
        """Open everything: one copy of each repeat."""
        self._open_to(ALL_LEVELS)

    def close_all(self) -> None:
        """Close everything."""
        self._open_to(0)

    def _open_to(self, depth: int) -> None:
        place = self.here()
        self._openings.open_to(depth)
        self._tell()
        if place is not None:
            self._find(place.item)

    # Jumping.

    def here(self) -> RowPosition | None:
        """Return the row with the cursor, counted from the next above it that no other row is about."""
        for below, row in enumerate(reversed(self.rows(0, self.cursor + 1))):
            item = row.scope if row.scope is not None else next(iter(row.nodes), None)
            if item is not None:
                return RowPosition(item, below)
        return None

    def go(self, place: RowPosition) -> None:
        """Move the cursor to a row where it was before."""
        self.reveal(place.item)
        self.move(place.below)

    def reveal(self, item: Item) -> None:
        """Open what a node or scope lies in, choose the copies it lies in, and move the cursor to it."""
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
        """Tell another copy of the repeat around the cursor, from the same row on; return whether there is one."""
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
        self._openings.move(scope, _level(row), wanted)
        self._tell()
        self.move_to(self.cursor)  # the last copy may end in fewer rows
        return True

    # Parts.

    def _show(self, around: Around) -> None:
        """Open a scope at one copy; rows are told anew only if it was not."""
        if self._openings.show(around.scope, around.level, around.copy):
            self._tell()

    def _tell(self) -> None:
        telling = OutlineBuilder(self.graph, self._openings.is_open, self._openings.copy_of, self._flow)
        self._rows: list[Row] = []
        self._coming: Iterator[Row] = tell(telling, self.folded)

    def _flow(self, graph: Graph, items: Sequence[Item], way_out: range) -> Flow:
        key = (id(items), len(items), way_out)  # items live as long as the folding
        if key not in self._flows:
            self._flows[key] = Flow(graph, items, way_out)
        return self._flows[key]

    def _tell_until(self, number: int | None) -> None:
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
        """Move the cursor to the row of an item, or to the closed scope it is in."""
        for place in count():
            self._tell_until(place + 1)
            if place == len(self._rows):  # a leaf that nothing leads to
                self.move_to(self.cursor)
                return
            if self._is_about(self._rows[place], item):
                self.cursor = place
                return

    def _is_about(self, row: Row, item: Item) -> bool:
        if row.scope is item or item in row.nodes:
            return True
        if isinstance(item, int) and self.graph.nodes[item].kind == "accumulate_grad":
            return row.scope is None and any(link.edge.next_node == item for link in row.way_on)
        return row.scope is not None and not row.is_open and node_ids(item).start in node_ids(row.scope)


def _level(row: Row) -> int:
    """Count the open scopes that a row is in."""
    return row.guides.count("scope")
