"""What the pages of a terminal have in common: a width, a set of characters, and text that fits both."""

from collections.abc import Iterator, Sequence
from textwrap import wrap

from rich.text import Text

from gradinspect.analyses.summary import describe_capture, describe_other_calls
from gradinspect.graph import Graph
from gradinspect.renderers.terminal.text import cut_end, shorten, visible

GAP = "  "
MAX_SENTENCE = 2000  # cells
AROUND = 3  # lines of the source before and after
STEPS = " ▏▎▍▌▋▊▉"  # eighths of a cell


class Page:
    """Writes the parts of a report at one width."""

    def __init__(self, *, width: int = 80, unicode: bool = True) -> None:
        """Choose the characters."""
        self.width = width
        self.unicode = unicode
        self.ellipsis = "…" if unicode else "..."

    def visible(self, text: str) -> str:
        """Make what a terminal would obey or lacks visible."""
        return visible(text, unicode=self.unicode)

    def fit(self, text: str, cells: int) -> str:
        """Cut the middle out of a text that is too wide."""
        return shorten(self.visible(text), max(cells, 0), self.ellipsis)

    def title(self, text: str, end: str = "") -> Text:
        """Write the first line of a report; where it is too wide, the file and the line that it begins with stay."""
        return Text(cut_end(self.visible(text), self.width - len(end), self.ellipsis) + end, "bold")

    def wrapped(self, text: str, style: str = "", *, indent: str = "") -> Iterator[Text]:
        """Yield the lines of a sentence; those after the first are indented. A name in it may be endless."""
        for line in wrap(self.fit(text, MAX_SENTENCE), self.width, initial_indent=indent, subsequent_indent=GAP):
            yield Text(line, style)

    def moment(self, graph: Graph) -> Iterator[Text]:
        """Yield where a graph was recorded, and which calls could be shown in its place."""
        yield self.title(describe_capture(graph))
        yield from self.other_calls(describe_other_calls(graph))

    def other_calls(self, text: str) -> Iterator[Text]:
        """Yield which calls could be shown in place of this one, if there are any."""
        if text:
            yield Text(self.fit(text, self.width), "bold")

    def bar(self, eighths: int) -> str:
        """Draw a bar of so many eighths of a cell; whole cells only where there is no more than ASCII."""
        return "█" * (eighths // 8) + STEPS[eighths % 8].strip() if self.unicode else "#" * (eighths // 8)

    def source(self, lines: Sequence[str], number: int) -> Iterator[Text]:
        """Yield the lines around one line of a file."""
        first = max(number - AROUND, 1)
        for current in range(first, min(number + AROUND, len(lines)) + 1):
            mark = ">" if current == number else " "
            text = self.visible(lines[current - 1].replace("\t", "    "))
            yield Text(
                self.fit(f"{mark} {current:>4}  {text}".rstrip(), self.width), "bold" if current == number else ""
            )
