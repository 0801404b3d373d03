"""The user's source with a column of bytes, in the style of a line profiler."""

from collections.abc import Iterable, Iterator, Sequence

from rich.text import Text

from gradinspect.analyses.memory.rows import LineBytes
from gradinspect.renderers.terminal.text import visible
from gradinspect.source import ReadSource
from gradinspect.units import format_bytes, format_share

BYTES_CELLS = 10
SHARE_CELLS = 6
FIGURE_CELLS = BYTES_CELLS + SHARE_CELLS
AROUND = 2  # lines shown before and after one that keeps memory
SHADES = "▁▂▃▄▅▆▇█"

Lines = Sequence[str] | None


def render_annotated_source(
    lines: Sequence[LineBytes],
    read_source: ReadSource,
    *,
    total: int | None = None,
    width: int = 80,
    unicode: bool = True,
) -> Iterator[Text]:
    """Yield each file's lines with their bytes, starting with the file that keeps the most.

    Args:
        lines: The lines that keep memory.
        read_source: Maps a file name in the record to its lines, or None if it cannot be read.
        total: The bytes of which each line has a share; None: of these lines.
        width: Cells of a row.
        unicode: Whether the output can show more than ASCII.
    """
    files: dict[str, list[LineBytes]] = {}
    for line in lines:
        files.setdefault(line.file, []).append(line)
    total = sum(line.num_bytes for line in lines) if total is None else total
    writer = _Writer(max((line.num_bytes for line in lines), default=0), total, width, unicode=unicode)
    for file, found in sorted(files.items(), key=lambda item: (-sum(line.num_bytes for line in item[1]), item[0])):
        yield writer.heading(file, sum(line.num_bytes for line in found))
        yield from writer.file(found, _matching(found, read_source(file)))


def _matching(found: Sequence[LineBytes], source: Lines) -> Lines:
    """Return the source only if it is the one that ran: each recorded line is still in its place."""
    if source is None:
        return None
    is_same = all(line.line <= len(source) and source[line.line - 1].strip() == line.code for line in found)
    return source if is_same else None


class _Writer:
    def __init__(self, largest: int, total: int, width: int, *, unicode: bool) -> None:
        self.largest = largest
        self.total = total
        self.width = width
        self.unicode = unicode

    def heading(self, file: str, num_bytes: int) -> Text:
        return Text(f"{self._figure(num_bytes)}  {visible(file, unicode=self.unicode)}", "bold")

    def file(self, found: Sequence[LineBytes], source: Lines) -> Iterator[Text]:
        by_number = {line.line: line for line in found}
        shown = sorted(by_number if source is None else _with_neighbors(by_number, len(source)))
        digits = len(str(max(shown)))
        for previous, number in zip([None, *shown], shown, strict=False):
            if previous is not None and number > previous + 1:
                yield Text(f"{'':>{FIGURE_CELLS}}  {'⋮' if self.unicode else ':':>{digits}}", "dim")
            line = by_number.get(number)
            code = source[number - 1].rstrip() if source is not None else line.code if line is not None else ""
            text = self._figures(line)
            text.append(f"  {number:>{digits}} ", "dim").append(f"{self._shade(line)} ", "cyan")
            text.append(visible(code.expandtabs(4), unicode=self.unicode), "dim" if line is None else "")
            text.truncate(self.width, overflow="ellipsis" if self.unicode else "crop")
            text.rstrip()
            yield text

    def _figures(self, line: LineBytes | None) -> Text:
        if line is None:
            return Text(" " * FIGURE_CELLS)
        return Text(self._figure(line.num_bytes), "bold" if line.num_bytes * 4 >= self.largest > 0 else "")

    def _figure(self, num_bytes: int) -> str:
        if not num_bytes:
            return f"{'shared':>{BYTES_CELLS}}".ljust(FIGURE_CELLS)
        return f"{format_bytes(num_bytes):>{BYTES_CELLS}}{format_share(num_bytes, self.total):>{SHARE_CELLS}}"

    def _shade(self, line: LineBytes | None) -> str:
        if line is None or not line.num_bytes or not self.unicode:
            return " "
        return SHADES[min(8 * line.num_bytes // self.largest, 7)]


def _with_neighbors(numbers: Iterable[int], last: int) -> set[int]:
    near = (number + step for number in numbers for step in range(-AROUND, AROUND + 1))
    return {number for number in near if 1 <= number <= last}
