"""The explorer application: the tree, the panel beside or below it, a status line. Keys are in `keys`."""

from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from textual import events
from textual.app import App, ComposeResult
from textual.containers import Container
from textual.widgets import Input

from gradinspect.analyses.structure.folding import Item, Scope
from gradinspect.analyses.summary import describe_capture, summarize
from gradinspect.explorer.commands import Commands
from gradinspect.explorer.journey import Journey
from gradinspect.explorer.keys import HelpPage, KeyReader
from gradinspect.explorer.views import PanelView, TextLine, TreeView
from gradinspect.graph import Graph
from gradinspect.renderers.terminal.nodes.node_page import NodePage
from gradinspect.renderers.terminal.nodes.panel_page import Explain, Facts, PageLine, PageStyle
from gradinspect.renderers.terminal.nodes.scope_page import ScopePage
from gradinspect.renderers.terminal.text import Part, fit, visible
from gradinspect.source import ReadSource
from gradinspect.units import format_count, format_held

MIN_WIDTH_BESIDE = 110  # cells from which the panel is beside the tree
HINTS = {
    "tree": "? help  q quit  / search  Enter expand  ] follow  Tab panel{more}",
    "panel": "? help  q quit  Enter follow  Tab back to the tree  y copy",
    "help": "Space next screen  q back to the tree",
}


class Exploration(NamedTuple):
    """What to explore, and functions that look up more."""

    graph: Graph
    explain: Explain
    read_source: ReadSource
    unicode: bool = True


class Explorer(App[None]):
    """Shows one graph."""

    ENABLE_COMMAND_PALETTE = False
    CSS_PATH: ClassVar[str] = "explorer.tcss"

    def __init__(self, exploration: Exploration, *, depth: int | None = None) -> None:
        """Prepare.

        Args:
            exploration: What to show.
            depth: How deep to expand it at first; by default as deep as is easy to read.
        """
        super().__init__(ansi_color=True)  # use the terminal's own sixteen colors and background
        self.theme = "ansi-dark"
        self.exploration = exploration
        self.journey = Journey(exploration.graph, depth)
        self.browser = self.journey.browser
        self.facts = Facts(exploration.graph, exploration.explain, exploration.read_source)
        self.reader = KeyReader()
        self.tree_view = TreeView(self.browser, unicode=exploration.unicode)
        self.panel = PanelView()
        self.head = TextLine(id="head")
        self.status = TextLine(id="status")
        self.prompt = Input(id="prompt", select_on_focus=False)
        self.commands = Commands(self)
        self._message = ""

    def compose(self) -> ComposeResult:
        """Compose the widgets."""
        yield self.head
        with Container(id="panes"):
            yield self.tree_view
            yield self.panel
        yield self.status
        yield self.prompt

    def on_mount(self) -> None:
        """Start at the first row."""
        self.screen.set_class(not self.exploration.unicode, "ascii")
        self.tree_view.focus()

    def on_resize(self, event: events.Resize) -> None:
        """Place the panel where there is room."""
        self.screen.set_class(event.size.width >= MIN_WIDTH_BESIDE, "beside")
        self.call_after_refresh(self._after_resize)

    def on_descendant_focus(self) -> None:
        """Show the keys of the focused pane."""
        self.say(self._message)

    def _after_resize(self) -> None:
        self._show_head()
        self.say("")
        if self.is_helping:
            self.start_helping()
        else:
            self.show_item()

    # Keys.

    async def on_key(self, event: events.Key) -> None:
        """Handle a key, unless the prompt has the focus."""
        if self.prompt.has_focus:
            if event.key in {"escape", "ctrl+c"}:
                self._stop_asking()
                event.prevent_default()
            return
        event.prevent_default()
        is_letter = event.is_printable and event.character not in {None, " "}
        for command in self.reader.read(str(event.character) if is_letter else event.key):
            self.say("")
            self.commands.run(command)

    def ask(self, what: str) -> None:
        """Open the prompt with a first character that says what it is for."""
        self.prompt.value = what
        self.screen.add_class("asking")
        self.prompt.focus()
        self.prompt.cursor_position = len(what)

    @property
    def is_helping(self) -> bool:
        """Whether the help page is shown."""
        return self.screen.has_class("helping")

    def start_helping(self) -> None:
        """Show the help page."""
        page = HelpPage(width=self.size.width, unicode=self.exploration.unicode)
        self.screen.add_class("helping")
        self.panel.show([PageLine(line) for line in page.lines()])
        self.panel.focus()
        self.say("")

    def stop_helping(self) -> None:
        """Hide the help page."""
        self.screen.remove_class("helping")
        self.tree_view.focus()
        self.call_after_refresh(self.show_item)
        self.say("")

    def _stop_asking(self) -> None:
        self.screen.remove_class("asking")
        self.tree_view.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Close the prompt when its first character is deleted."""
        if self.prompt.has_focus and not event.value:
            self._stop_asking()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Search, or go to a node."""
        self._stop_asking()
        self.commands.answer(event.value)

    # Parts of the screen.

    def show_item(self) -> None:
        """Show the current item in the panel."""
        item = self.journey.item
        self.panel.show([] if item is None else list(self._lines_about(item)))
        self.say(self._message)

    def _lines_about(self, item: Item) -> Iterator[PageLine]:
        if not isinstance(item, Scope):
            return NodePage(self.facts, **self._page_style()).node(item)
        row = self.browser.row
        return ScopePage(self.facts, **self._page_style()).scope(item, row.copy if row and row.scope is item else None)

    def _page_style(self) -> PageStyle:
        width = max(self.panel.content_size.width, 1)
        return {"width": width, "unicode": self.exploration.unicode, "is_compact": not self.screen.has_class("beside")}

    def warnings(self) -> list[PageLine]:
        """Return the warnings from recording the graph."""
        return list(NodePage(self.facts, **self._page_style()).warnings()) if self.exploration.graph.warnings else []

    def _show_head(self) -> None:
        graph = self.exploration.graph
        figures = summarize(graph)
        warnings = f"  {format_count(len(graph.warnings), 'warning')}: w" if graph.warnings else ""
        parts = [
            Part(visible(describe_capture(graph), unicode=self.exploration.unicode), "bold", can_shrink=True),
            Part(f"  {format_count(figures.nodes, 'node')}, {format_held(figures.held_bytes, 0)}", "dim"),
            Part(warnings, "yellow"),
        ]
        self.head.show(fit(parts, self.head.size.width, "…" if self.exploration.unicode else "..."))

    def say(self, message: str) -> None:
        """Show a message in the last line, or the most important keys if there is none."""
        self._message = message
        place = "help" if self.is_helping else "panel" if self.panel.has_focus else "tree"
        hidden = len(self.panel.lines) - self.panel.content_size.height
        more = f", {format_count(hidden, 'more line')}" if hidden > 0 else ""
        text = visible(message, unicode=self.exploration.unicode) if message else HINTS[place].format(more=more)
        parts = [Part(text, "" if message else "dim")]
        self.status.show(fit(parts, self.status.size.width, "…" if self.exploration.unicode else "..."))
