"""The sizes that were tried, for the terminal: the verdict, and a table of sizes and peaks."""

from collections.abc import Iterator

from rich.text import Text

from gradinspect.analyses.planning.sizes import SizeTable
from gradinspect.renderers.terminal.page import Page
from gradinspect.units import format_beside, format_bytes


class SizePage(Page):
    """Writes one page."""

    def lines(self, table: SizeTable) -> Iterator[Text]:
        """Yield the page."""
        yield from self.paragraph(_verdict(table))
        yield Text()
        width = max(len(table.name), *(len(str(row.size)) for row in table.rows))
        yield Text(f"  {self.visible(table.name):>{width}}{'peak':>14}", "bold")
        for row in table.rows:
            verdict = "" if table.limit is None or row.failure or row.peak_bytes <= table.limit else "  does not fit"
            what = f"{format_beside(row.peak_bytes, table.limit):>14}{verdict}" if not row.failure else "  "
            yield Text(self.fit(f"  {row.size:>{width}}{what}{row.failure}", self.width))
        yield Text()
        for note in table.notes:
            yield from self.paragraph(note)
        yield from self.paragraph(f"Not counted: {', '.join(table.not_counted)}.")


def _verdict(table: SizeTable) -> str:
    if table.limit is None:
        return f"Peaks by {table.name}, {table.source}"
    if table.largest is None:
        return f"No {table.name} fits: limit {format_bytes(table.limit)}, {table.source}"
    peak = next(row.peak_bytes for row in table.rows if row.size == table.largest)
    fitting = f"The largest {table.name} that fits is {table.largest}"
    limit = format_beside(table.limit, peak)
    return f"{fitting}: peak {format_beside(peak, table.limit)}, limit {limit}, {table.source}"
