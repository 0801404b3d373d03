"""The two panes: the tree and the panel. Each draws only its visible lines.

NOTE [Lines, not markup]
A line is a `rich.text.Text` made of escaped parts, and is drawn unchanged. Text from the user's program is never passed
to a widget as a string, which textual would parse as markup.
"""

from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.strip import Strip
from textual.widget import Widget

from gradinspect.explorer.browsing import Browser
from gradinspect.renderers.terminal.nodes.panel_page import PageLine
from gradinspect.renderers.terminal.text import harmless
from gradinspect.renderers.terminal.trees.tree import TreeOptions, TreePage

MARGIN = 2  # rows kept visible above and below the cursor


class TextLine(Widget):
    """One line."""

    def __init__(self, *, id: str) -> None:  # noqa: A002  # textual's name for it
        """Start empty."""
        super().__init__(id=id)
        self._text = Text()

    def show(self, text: Text) -> None:
        """Replace the line."""
        self._text = text
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw the line."""
        return _strip(self, self._text if y == 0 else Text())


class LinesView(Widget, can_focus=True):
    """A scrolling window on lines, one of them with the cursor."""

    top = 0

    @property
    def place(self) -> int:
        """The line with the cursor."""
        raise NotImplementedError

    def line(self, place: int) -> Text | None:
        """Return a line, or None after the last."""
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        """Draw one line of the window."""
        place = self.top + y
        line = self.line(place)
        if line is None:
            return _strip(self, Text())
        if place == self.place:
            style = "reverse" if self.has_focus else "bold underline"
            line = Text(line.plain.ljust(self.size.width), style)
        return _strip(self, line)

    def follow_cursor(self) -> None:
        """Scroll the window to the cursor."""
        height = max(self.content_size.height, 1)
        margin = min(MARGIN, (height - 1) // 2)
        top = min(self.top, max(self.place - margin, 0))
        top = max(top, self.place + margin - height + 1, 0)
        if self.line(top + height - 1) is None:
            top = min(top, self._last_top(height))
        self.top = top
        self.refresh()

    def _last_top(self, height: int) -> int:
        """Return the topmost line if the last line is at the bottom."""
        last = self.place
        while self.line(last + 1) is not None:
            last += 1
        return max(last - height + 1, 0)

    def center(self) -> None:
        """Scroll the window so that the cursor is in the middle."""
        self.top = max(self.place - self.content_size.height // 2, 0)
        self.follow_cursor()

    def on_focus(self) -> None:
        """Draw the cursor as active."""
        self.refresh()

    def on_blur(self) -> None:
        """Draw the cursor as inactive."""
        self.refresh()


class TreeView(LinesView):
    """The outline of the graph."""

    def __init__(self, browser: Browser, *, unicode: bool) -> None:
        """Show the rows of a browser."""
        super().__init__(id="tree")
        self.browser = browser
        self._unicode = unicode
        self._page: TreePage | None = None
        self._lines: dict[int, Text] = {}

    @property
    def place(self) -> int:
        """The row with the cursor."""
        return self.browser.cursor

    def line(self, place: int) -> Text | None:
        """Return a row as a line, cached."""
        known = self._lines.get(place)
        if known is None:
            row = next(iter(self.browser.rows(place, 1)), None)
            if row is None:
                return None
            known = self._lines[place] = self._tree_page().line(row)
        return known

    def rewrite(self) -> None:
        """Discard the cached lines after something was expanded or collapsed."""
        self._lines.clear()
        self.follow_cursor()

    def on_resize(self, _event: events.Resize) -> None:
        """Rewrite everything at the new width."""
        self._page = None
        self.rewrite()

    def _tree_page(self) -> TreePage:
        if self._page is None:
            self._page = TreePage(
                self.browser.graph, TreeOptions(width=max(self.size.width, 1), unicode=self._unicode, max_rows=None)
            )
        return self._page


class PanelView(LinesView):
    """The details of one item."""

    def __init__(self) -> None:
        """Start empty."""
        super().__init__(id="panel")
        self.lines: Sequence[PageLine] = ()
        self._place = 0

    @property
    def place(self) -> int:
        """The line with the cursor; there is none while the tree has the focus."""
        return self._place if self.has_focus else -1

    @property
    def target(self) -> int | None:
        """The node that the line with the cursor links to."""
        return self.lines[self._place].target if self._place < len(self.lines) else None

    def show(self, lines: Sequence[PageLine]) -> None:
        """Replace the lines, and move to the first one."""
        self.lines = lines
        self._place = self.top = 0
        self.refresh()

    def line(self, place: int) -> Text | None:
        """Return a line."""
        return self.lines[place].text if 0 <= place < len(self.lines) else None

    def move_to(self, place: int) -> None:
        """Move the cursor to a line, or to the last one."""
        self._place = max(0, min(place, len(self.lines) - 1))
        self.follow_cursor()

    def move(self, by: int) -> None:
        """Move the cursor by some lines."""
        self.move_to(self._place + by)


def _strip(widget: Widget, line: Text) -> Strip:
    spans = Text().append(harmless(line))  # rich applies a text's own style only if it has a span
    rendered = spans.render(widget.app.console)
    segments = [Segment(text, style or Style.null()) for text, style, _ in rendered]  # NO_COLOR needs a style to change
    return Strip(segments).adjust_cell_length(widget.content_size.width, Style.null())
