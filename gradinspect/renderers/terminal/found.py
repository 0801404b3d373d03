"""Nodes that were found, one per line."""

from collections.abc import Iterator, Sequence
from itertools import islice

from rich.cells import cell_len
from rich.text import Text

from gradinspect.analyses.selection.finding import FoundNode
from gradinspect.renderers.terminal.page import GAP, Page
from gradinspect.units import format_bytes, format_count

COLUMNS = ("#", "class", "output", "bytes", "status", "module", "line")
LEAST_CELLS = {"class": 16, "output": 12, "module": 12, "line": 12}  # before a column is dropped
RIGHT_ALIGNED = frozenset({"#", "bytes"})
STYLES = {"#": "cyan", "class": "bold", "output": "green", "status": "red", "module": "magenta", "line": "dim"}
MAX_ROWS = 10_000


class FoundPage(Page):
    """Writes found nodes at one width."""

    def lines(self, rows: Sequence[FoundNode], condition: str) -> Iterator[Text]:
        """Yield a heading and a line per node, then how many there are and what they hold."""
        shown = [self._cells(row) for row in islice(rows, MAX_ROWS)]
        widths = self._widths(shown)
        if shown:
            yield self._line({column: column for column in COLUMNS}, widths, is_head=True)
        yield from (self._line(cells, widths) for cells in shown)
        if len(rows) > len(shown):
            yield Text(f"{format_count(len(rows) - len(shown), 'more node')}: --format json", "dim")
        held = format_bytes(sum(row.held_bytes for row in rows))
        yield from self.wrapped(f"{format_count(len(rows), 'node')} where {condition}, {held} held", "bold")

    def _cells(self, row: FoundNode) -> dict[str, str]:
        statuses = [status for status in row.statuses if status != "live"]
        named = f"{row.name} {row.leaf}" if row.leaf else row.name
        return {
            "#": str(row.id),
            "class": self.visible(named),
            "output": self.visible("; ".join(row.outputs)),
            "bytes": format_bytes(row.held_bytes) if row.held_bytes else "",
            "status": ", ".join(statuses),
            "module": self.visible(row.module or ""),
            "line": self.visible(row.line or ""),
        }

    def _widths(self, shown: Sequence[dict[str, str]]) -> dict[str, int]:
        """Choose how many cells each column takes; 0 for one that is empty or does not fit."""
        widths = {column: max((cell_len(cells[column]) for cells in shown), default=0) for column in COLUMNS}
        widths = {column: max(width, len(column)) if width else 0 for column, width in widths.items()}
        for column in ("output", "module", "class", "line"):
            over = sum(widths.values()) + len(GAP) * (sum(map(bool, widths.values())) - 1) - self.width
            if over > 0 and widths[column] > LEAST_CELLS[column]:
                widths[column] = max(widths[column] - over, LEAST_CELLS[column])
        return widths

    def _line(self, cells: dict[str, str], widths: dict[str, int], *, is_head: bool = False) -> Text:
        line = Text(no_wrap=True, end="")
        for column in COLUMNS:
            if widths[column]:
                text = self.fit(cells[column], widths[column])
                padding = " " * (widths[column] - cell_len(text))
                text = padding + text if column in RIGHT_ALIGNED else text + padding
                line.append(GAP if line else "").append(text, "bold" if is_head else STYLES.get(column, ""))
        line.rstrip()
        line.truncate(self.width)
        return line
