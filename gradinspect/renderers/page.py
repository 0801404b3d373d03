"""What the pages of a terminal have in common: a width, a set of characters, and text that fits both."""

from collections.abc import Iterator
from textwrap import wrap

from rich.text import Text

from gradinspect.renderers.terminal_text import shorten, visible

GAP = "  "
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

    def wrapped(self, text: str, style: str = "", *, indent: str = "") -> Iterator[Text]:
        """Yield the lines of a sentence; those after the first are indented."""
        for line in wrap(self.visible(text), self.width, initial_indent=indent, subsequent_indent=GAP):
            yield Text(line, style)

    def bar(self, eighths: int) -> str:
        """Draw a bar of so many eighths of a cell; whole cells only where there is no more than ASCII."""
        return "█" * (eighths // 8) + STEPS[eighths % 8].strip() if self.unicode else "#" * (eighths // 8)
