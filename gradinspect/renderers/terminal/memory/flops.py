"""Floating point operations on a terminal: a row for each line and operator, and what has no count."""

from collections.abc import Iterator, Mapping, Sequence

from rich.cells import cell_len
from rich.text import Text

from gradinspect.analyses.memory.flops import CountedFlops, FlopRow
from gradinspect.renderers.terminal.page import GAP, Page
from gradinspect.units import format_count, format_flops, format_share

CELLS = 10
SHARE_CELLS = 6
MIN_NAME = 24
MAX_BAR_CELLS = 40
MAX_CLASSES = 8


class FlopsPage(Page):
    """Writes the table at one width."""

    def table(self, counted: CountedFlops, rows: Sequence[FlopRow], rest: FlopRow | None) -> Iterator[Text]:
        """Yield one row per line and operator, the totals, and the classes without a count."""
        names = [
            self.visible(GAP.join(filter(None, (row.label, row.line, self.times(len(row.nodes)))))) for row in rows
        ]
        names = names if rest is None else [*names, rest.label]
        shown = rows if rest is None else (*rows, rest)
        total = sum(row.total for row in counted.rows)
        room = max(self.width - 2 * (CELLS + len(GAP)) - SHARE_CELLS, 0)
        width = min(max([MIN_NAME, *map(cell_len, names)]), room)
        bar = min(max(room - width - len(GAP), 0), MAX_BAR_CELLS)
        yield self._bold(self._line("FLOPs", ("forward", "backward"), "%", width))
        for name, row in zip(self.apart(names, width), shown, strict=True):
            figures = (format_flops(row.forward), format_flops(row.backward))
            line = Text(self._line(name, figures, format_share(row.total, total), width)).append(GAP)
            line.append(self.bar(round(8 * bar * row.total / total) if total else 0), "cyan")
            line.rstrip()
            line.truncate(self.width)
            yield line
        sums = [format_flops(sum(getattr(row, way) for row in counted.rows)) for way in ("forward", "backward")]
        yield self._bold(self._line("total", sums, "", width))
        yield from self._unknown(counted.unknown)

    def _bold(self, text: str) -> Text:
        line = Text(text, "bold")
        line.truncate(self.width)
        return line

    def _unknown(self, unknown: Mapping[str, int]) -> Iterator[Text]:
        if unknown:
            named = ", ".join(self.visible(name) for name in list(unknown)[:MAX_CLASSES])
            more = f" and {format_count(len(unknown) - MAX_CLASSES, 'more class', 'more classes')}"
            classes = f"{named}{more}" if len(unknown) > MAX_CLASSES else named
            nodes = format_count(sum(unknown.values()), "node")
            yield from self.wrapped(f"unknown: {nodes} ({classes}); torch has no formula for them", "dim")

    def _line(self, name: str, figures: Sequence[str], share: str, width: int) -> str:
        text = self.fit(name, width)
        cells = "".join(f"{GAP}{figure:>{CELLS}}" for figure in figures)
        return f"{text}{' ' * (width - cell_len(text))}{cells}{share:>{SHARE_CELLS}}".rstrip()
