"""The sizes that were tried, for the terminal: the verdict, and a table of sizes and peaks, or of pairs."""

from collections.abc import Iterator

from rich.text import Text

from gradinspect.analyses.planning.boundary import SizeRow
from gradinspect.analyses.planning.rank_numbers import WORLD_SIZE
from gradinspect.analyses.planning.size_pairs import PairRow, PairTable
from gradinspect.analyses.planning.sizes import SizeTable
from gradinspect.renderers.terminal.page import Page
from gradinspect.units import format_beside, format_bytes

MAX_NAME = 16  # cells
CELL = 14


class SizePage(Page):
    """Writes one page."""

    def lines(self, table: SizeTable) -> Iterator[Text]:
        """Yield the page."""
        yield from self.paragraph(_verdict(table))
        yield from _notes(self, table)
        yield Text()
        width = max(len(table.name), *(len(str(row.size)) for row in table.rows))
        yield Text(f"  {self.visible(table.name):>{width}}{'peak':>14}", "bold")
        for row in table.rows:
            verdict = "" if table.limit is None or row.failure or row.peak_bytes <= table.limit else "  does not fit"
            what = f"{format_beside(row.peak_bytes, table.limit):>14}{verdict}" if not row.failure else "  "
            yield Text(self.fit(f"  {row.size:>{width}}{what}{row.failure}", self.width))
        yield Text()
        yield from self.paragraph(f"Not counted: {', '.join(table.not_counted)}.")


class PairPage(Page):
    """Writes one page about two sizes."""

    def lines(self, table: PairTable) -> Iterator[Text]:
        """Yield the page."""
        first, second = (self.fit(name, MAX_NAME) for name in table.names)
        width = max(len(first), 8)
        limit = table.limit
        if limit is None:
            yield from self.paragraph(f"Peaks by {table.names[0]} and {table.names[1]}, {table.source}")
            yield from _notes(self, table)
            yield Text()
            yield Text(f"  {'':>{width}}  {second}")
            numbers = "".join(f"{row.size:>{CELL}}" for row in table.rows[0].rows)
            yield Text(f"  {first:>{width}}{numbers}", "bold")
            for row in table.rows:
                peaks = "".join(f"{_peak(one, None):>{CELL}}" for one in row.rows)
                yield Text(f"  {row.number:>{width}}{peaks}")
        else:
            yield from self.paragraph(_pair_verdict(table, limit))
            yield from _notes(self, table)
            yield Text()
            wide = max(CELL, len(second) + len("  largest "))
            yield Text(f"  {first:>{width}}{f'largest {second}':>{wide}}{'peak':>{CELL}}  the next larger one", "bold")
            for row in table.rows:
                yield Text(self.fit(f"  {row.number:>{width}}{_largest(row, wide, limit)}", self.width))
        yield Text()
        yield from self.paragraph(f"Not counted: {', '.join(table.not_counted)}.")


def _notes(page: Page, table: SizeTable | PairTable) -> Iterator[Text]:
    """Say what changes the meaning of the figures, above them."""
    for note in table.notes:
        yield from page.paragraph(note, "  ")


def _largest(row: PairRow, width: int, limit: int) -> str:
    """Write the largest second size that fits, its peak, and what the next one needs."""
    next_one = "" if row.beyond is None else f"  {row.beyond.size}: {_peak(row.beyond, limit, row.beyond.failure)}"
    if row.best is None:
        return f"{'none':>{width}}{'':>{CELL}}{next_one}"
    return f"{row.best.size:>{width}}{_peak(row.best, limit):>{CELL}}{next_one}"


def _peak(row: SizeRow, limit: int | None, failure: str = "fails") -> str:
    return failure if row.failure else format_beside(row.peak_bytes, limit)


def _verdict(table: SizeTable) -> str:
    if table.limit is None:
        return f"Peaks by {table.name}, {table.source}"
    by_ranks = table.name == WORLD_SIZE
    if table.best is None:
        far = f" up to {table.rows[-1].size}" if by_ranks else ""
        return f"No {table.name}{far} fits: limit {format_bytes(table.limit)}, {table.source}"
    peak = next(row.peak_bytes for row in table.rows if row.size == table.best)
    fitting = f"The {'smallest' if by_ranks else 'largest'} {table.name} that fits is {table.best}"
    limit = format_beside(table.limit, peak)
    whose = " of rank 0" if by_ranks else ""
    return f"{fitting}: peak{whose} {format_beside(peak, table.limit)}, limit {limit}, {table.source}"


def _pair_verdict(table: PairTable, limit: int) -> str:
    first, second = table.names
    if not table.has_fitting:
        return f"No {second} fits with any {first}: limit {format_bytes(limit)}, {table.source}"
    return f"The largest {second} that fits, by {first}: limit {format_bytes(limit)}, {table.source}"
