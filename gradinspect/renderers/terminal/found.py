"""Nodes that were found, one per line."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from rich.cells import cell_len
from rich.text import Text

from gradinspect.analyses.selection.finding import AlikeNodes, folded_nodes
from gradinspect.analyses.structure.call_names import OUTERMOST, shown_path
from gradinspect.graph import FoundNode
from gradinspect.renderers.terminal.class_names import brief_classes, without_backward
from gradinspect.renderers.terminal.page import GAP, Page
from gradinspect.renderers.terminal.text import shorten_apart
from gradinspect.units import format_bytes, format_count

COLUMNS = ("#", "class", "times", "output", "bytes", "status", "module", "line", "hooks")
HEADS = {"times": ""}
GIVE_WAY = ("output", "line")  # dropped before names are cut
SHRUNK = (("hooks", 24), ("module", 24), ("class", 16), ("module", 12))  # in this order, each to this many cells
RIGHT_ALIGNED = frozenset({"#", "times", "bytes"})
STYLES = {"#": "cyan", "class": "bold", "output": "green", "status": "red", "module": "magenta", "line": "dim"}
MAX_ROWS = 10_000
BRIEFLY: Final[Sequence[tuple[str, Callable[[Sequence[str]], Iterable[str]]]]] = (
    ("output", lambda texts: (text.replace(", ", ",") for text in texts)),
    ("class", lambda texts: map(without_backward, texts)),
    ("line", lambda texts: (text.rpartition("/")[2] for text in texts)),
    ("class", lambda texts: map(brief_classes(texts).__getitem__, texts)),
)


class FoundPage(Page):
    """Writes found nodes at one width."""

    def lines(
        self, rows: Sequence[FoundNode], condition: str, *, model: str = OUTERMOST, is_full: bool = False
    ) -> Iterator[Text]:
        """Yield a heading, a line per node or for those of equal blocks, then how many there are and what they hold.

        Args:
            rows: The nodes.
            condition: What was asked for.
            model: What to call the outermost module.
            is_full: Whether each node has a line of its own.
        """
        folded = [AlikeNodes(row, 1) for row in rows] if is_full else folded_nodes(rows)
        shown = [self._cells(alike, model, names_hooks="hooks" in condition) for alike in folded[:MAX_ROWS]]
        widths = self._widths(shown)
        if shown:
            self._shorten(shown, widths)
            yield self._line({column: HEADS.get(column, column) for column in COLUMNS}, widths, is_head=True)
        for cells, alike in zip(shown, folded, strict=False):
            yield self._line(cells, widths)
            if alike.odd_one is not None:
                yield from self.odd_one(shown_path(alike.odd_one.name, model), alike.odd_one.times)
        left_out = sum(alike.times for alike in folded[MAX_ROWS:])
        if left_out:
            yield Text(f"{format_count(left_out, 'more node')}: --format json", "dim")
        held = format_bytes(sum(row.held_bytes for row in rows))
        each = "" if len(folded) == len(rows) else "; each one: --full"
        yield from self.wrapped(f"{format_count(len(rows), 'node')} where {condition}, {held} held{each}", "bold")
        dropped = [column for column in GIVE_WAY if not widths[column] and any(cells[column] for cells in shown)]
        if dropped:
            yield Text(f"not shown at this width: {', '.join(dropped)}", "dim")

    def _cells(self, alike: AlikeNodes, model: str, *, names_hooks: bool) -> dict[str, str]:
        row, times = alike.node, alike.times
        statuses = [status for status in row.statuses if status != "live"]
        named = f"{row.name} {shown_path(row.leaf, model)}" if row.leaf else row.name
        return {
            "#": str(row.id),
            "class": self.visible(named),
            "times": self.times(times),
            "output": self.visible("; ".join(row.outputs)),
            "bytes": format_bytes(row.held_bytes) if row.held_bytes else "",
            "status": ", ".join(statuses),
            "module": self.visible(shown_path(row.module, model)) if row.module else "",
            "line": self.visible(row.line or ""),
            "hooks": self.visible(", ".join(row.hooks)) if names_hooks else "",
        }

    def _widths(self, shown: Sequence[dict[str, str]]) -> dict[str, int]:
        """Choose how many cells each column takes; 0 for one that is empty or does not fit.

        Texts in `shown` are abbreviated before a column is made narrower than its text.
        """
        widths = self._widest(shown)
        for column, briefly in BRIEFLY:
            if self._excess(widths) > 0:
                for cells, text in zip(shown, briefly([cells[column] for cells in shown]), strict=True):
                    cells[column] = text
                widths = self._widest(shown)
        widths = self._given_way(widths)
        for column, least in SHRUNK:
            over = self._excess(widths)
            if over > 0 and widths[column] > least:
                widths[column] = max(widths[column] - over, least)
        return widths

    def _given_way(self, widths: dict[str, int]) -> dict[str, int]:
        """Drop columns one by one until the rest fit, then put back those that fit after all."""
        left = dict(widths)
        for column in GIVE_WAY:
            if self._excess(left) > 0:
                left[column] = 0
        for column in GIVE_WAY:
            if self._excess(left | {column: widths[column]}) <= 0:
                left[column] = widths[column]
        return left

    @staticmethod
    def _widest(shown: Sequence[dict[str, str]]) -> dict[str, int]:
        widths = {column: max((cell_len(cells[column]) for cells in shown), default=0) for column in COLUMNS}
        return {column: max(width, len(HEADS.get(column, column))) if width else 0 for column, width in widths.items()}

    def _excess(self, widths: dict[str, int]) -> int:
        return sum(widths.values()) + len(GAP) * (sum(map(bool, widths.values())) - 1) - self.width

    def _shorten(self, shown: Sequence[dict[str, str]], widths: dict[str, int]) -> None:
        """Shorten classes, leaves and modules so that different ones stay different."""
        for column in ("class", "module"):
            if widths[column]:
                names = shorten_apart([cells[column] for cells in shown], widths[column], self.ellipsis)
                for cells, name in zip(shown, names, strict=True):
                    cells[column] = name

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
