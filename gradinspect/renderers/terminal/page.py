"""The base of all terminal pages: a width, a character set, and text that fits both."""

from collections.abc import Iterable, Iterator, Sequence

from rich.text import Text

from gradinspect.analyses.structure.name_folding import format_times
from gradinspect.analyses.summary import describe_capture, describe_other_calls
from gradinspect.graph import Graph
from gradinspect.renderers.terminal.summary import GRAD_OPTION
from gradinspect.renderers.terminal.text import cut_end, shorten, shorten_apart, visible, wrap

GAP = "  "
MAX_SENTENCE = 2000  # cells
AROUND = 3  # source lines before and after
STEPS = " ▏▎▍▌▋▊▉"  # eighths of a cell


class Page:
    """Writes the parts of a report at one width."""

    def __init__(self, *, width: int = 80, unicode: bool = True) -> None:
        """Choose the characters."""
        self.width = width
        self.unicode = unicode
        self.ellipsis = "…" if unicode else "..."
        self.times_sign = "×" if unicode else "x"

    def times(self, count: int) -> str:
        """Write how many equal ones a row stands for: `×12`; "" for one."""
        return f"{self.times_sign}{count:,}" if count > 1 else ""

    def visible(self, text: str) -> str:
        """Escape control characters and what the terminal cannot show."""
        return visible(text, unicode=self.unicode)

    def fit(self, text: str, cells: int) -> str:
        """Shorten a text that is too wide by cutting its middle."""
        return shorten(self.visible(text), max(cells, 0), self.ellipsis)

    def apart(self, names: Iterable[str], cells: int) -> list[str]:
        """Shorten names that stand below each other; no two different ones become alike."""
        return shorten_apart([self.visible(name) for name in names], max(cells, 0), self.ellipsis)

    def title(self, text: str, end: str = "") -> Text:
        """Write the first line of a report; if it is too wide, the file and line at its start stay."""
        return Text(cut_end(self.visible(text), self.width - len(end), self.ellipsis) + end, "bold")

    def wrapped(self, text: str, style: str = "", *, indent: str = "") -> Iterator[Text]:
        """Wrap a sentence with a hanging indent. Names in it may be arbitrarily long."""
        sentence = self.fit(text, MAX_SENTENCE)
        indents = {"initial_indent": indent, "subsequent_indent": indent + GAP}
        yield from (Text(line, style) for line in wrap(sentence, self.width, break_on_hyphens=False, **indents))

    def odd_one(self, name: str, times: float, indent: str = GAP) -> Iterator[Text]:
        """Yield which of the equal blocks in the row above is unlike the others."""
        yield from self.wrapped(f"{name}: {format_times(times)} the others", "yellow", indent=indent)

    def paragraph(self, text: str, indent: str = "") -> Iterator[Text]:
        """Wrap a text without a hanging indent; a word that is wider than the page stays whole."""
        lines = wrap(self.visible(text), self.width - len(indent), break_on_hyphens=False, break_long_words=False)
        yield from (Text(f"{indent}{line}") for line in lines)

    def capture_lines(self, graph: Graph) -> Iterator[Text]:
        """Yield where a graph was recorded, and which other calls could be shown."""
        yield self.title(describe_capture(graph))
        yield from self.other_calls(describe_other_calls(graph))

    def other_calls(self, text: str) -> Iterator[Text]:
        """Yield which other calls could be shown, if any."""
        if text:
            yield Text(self.fit(text + GRAD_OPTION, self.width), "bold")

    def bar(self, eighths: int) -> str:
        """Draw a bar of that many eighths of a cell, rounded down to whole cells in ASCII."""
        return "█" * (eighths // 8) + STEPS[eighths % 8].strip() if self.unicode else "#" * (eighths // 8)

    def source(self, lines: Sequence[str], number: int) -> Iterator[Text]:
        """Yield a line of a file with its context."""
        first = max(number - AROUND, 1)
        for current in range(first, min(number + AROUND, len(lines)) + 1):
            mark = ">" if current == number else " "
            text = self.visible(lines[current - 1].replace("\t", "    "))
            yield Text(
                self.fit(f"{mark} {current:>4}  {text}".rstrip(), self.width), "bold" if current == number else ""
            )
