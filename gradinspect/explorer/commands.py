"""The commands behind the keys: moving, expanding and jumping, in whichever pane has the focus."""

from collections.abc import Sequence
from typing import Protocol

from gradinspect.explorer.browsing import RowPosition
from gradinspect.explorer.journey import Journey
from gradinspect.explorer.keys import Command
from gradinspect.explorer.views import LinesView, PanelView, TreeView
from gradinspect.renderers.terminal.nodes.panel_page import PageLine
from gradinspect.units import format_count

IN_HELP = {"down", "up", "half_down", "half_up", "page_down", "page_up", "first", "last", "center", "copy"}


class Screen(Protocol):
    """The parts of the app that commands use."""

    journey: Journey
    tree_view: TreeView
    panel: PanelView

    @property
    def is_helping(self) -> bool:
        """Whether the help page is shown."""

    def start_helping(self) -> None:
        """Show the help page."""

    def stop_helping(self) -> None:
        """Hide the help page."""

    def ask(self, what: str) -> None:
        """Open the prompt with a first character."""

    def say(self, message: str) -> None:
        """Show a message in the last line."""

    def show_item(self) -> None:
        """Show the current item in the panel."""

    def warnings(self) -> Sequence[PageLine]:
        """Return the warnings from recording the graph."""

    def copy_to_clipboard(self, text: str) -> None:
        """Copy a text to the clipboard of the terminal."""

    def action_suspend_process(self) -> None:
        """Suspend the process, as Ctrl-Z does."""

    def exit(self) -> None:
        """Quit."""


class Commands:
    """Runs commands on one explorer; each name in `keys` is a method here."""

    def __init__(self, app: Screen) -> None:
        """Store the parts of the app."""
        self._app = app
        self._journey, self._browser = app.journey, app.journey.browser
        self._tree_view, self._panel = app.tree_view, app.panel
        self._before: RowPosition | None = None  # the row where `g` was pressed

    def run(self, command: Command) -> None:
        """Run a command; while help is shown, scroll or leave it."""
        if self._app.is_helping and command.name not in IN_HELP:
            self._app.stop_helping()
            if command.name in {"quit", "help", "leave", "enter", "switch"}:
                return
        getattr(self, f"_{command.name}")(command.number)

    def answer(self, typed: str) -> None:
        """Run what was typed after `/` or `:`."""
        text = typed[1:].strip()
        if typed.startswith("/"):
            self._changed(self._journey.search(text) if text else self._journey.next_hit(1))
        elif text in {"q", "quit", "q!"}:
            self._app.exit()
        elif text:
            self._changed(self._journey.go_to_node(text))

    @property
    def _view(self) -> LinesView:
        return self._panel if self._panel.has_focus else self._tree_view

    def _move_to(self, place: int) -> None:
        if self._panel.has_focus:
            self._panel.move_to(place)
        else:
            self._journey.move_to(place)
            self._moved()

    def _moved(self) -> None:
        self._tree_view.follow_cursor()
        self._app.show_item()

    def _changed(self, message: str = "") -> None:
        """Redraw the tree after rows were expanded, collapsed or jumped to."""
        self._tree_view.rewrite()
        self._app.show_item()
        if message:
            self._app.say(message)

    # Move.

    def _down(self, count: int | None) -> None:
        self._move_to(self._view.place + (count or 1))

    def _up(self, count: int | None) -> None:
        self._move_to(self._view.place - (count or 1))

    def _half_down(self, _count: int | None) -> None:
        self._turn(self._view.content_size.height // 2)

    def _half_up(self, _count: int | None) -> None:
        self._turn(-(self._view.content_size.height // 2))

    def _page_down(self, _count: int | None) -> None:
        self._turn(self._view.content_size.height - 1)

    def _page_up(self, _count: int | None) -> None:
        self._turn(1 - self._view.content_size.height)

    def _turn(self, by: int) -> None:
        """Move the cursor and the window by the same number of lines."""
        self._view.top = max(self._view.top + by, 0)
        self._move_to(max(self._view.place + by, 0))

    def _first(self, _count: int | None) -> None:
        self._before = self._browser.here()
        self._move_to(0)

    def _last(self, count: int | None) -> None:
        if count is not None:
            self._changed(self._journey.go_to_node(str(count)))
        elif self._panel.has_focus:
            self._panel.move_to(len(self._panel.lines))
        else:
            self._browser.move_to_end()
            self._journey.forget()
            self._moved()

    def _take_back(self, _count: int | None) -> None:
        """Undo the `g` of a `gd`."""
        if self._before is not None and not self._panel.has_focus:
            self._browser.go(self._before)

    def _center(self, _count: int | None) -> None:
        self._view.center()

    def _switch(self, _count: int | None) -> None:
        if self._panel.has_focus:
            self._tree_view.focus()
        else:
            self._panel.focus()

    # Expand and collapse.

    def _enter(self, count: int | None) -> None:
        row = self._browser.row
        if self._panel.has_focus or (row is not None and row.scope is None and row.targets):
            self._follow(count)
        elif row is not None and row.scope is not None:
            self._toggle(count)
        else:
            self._panel.focus()

    def _toggle(self, _count: int | None) -> None:
        if self._browser.open() or self._browser.close():
            self._journey.forget()
            self._changed()
        else:
            self._app.say("There is nothing to expand in this row.")

    def _step_in(self, count: int | None) -> None:
        row = self._browser.row
        if self._panel.has_focus:
            self._follow(count)
        elif row is None or row.scope is None:
            self._app.say("There is nothing to expand in this row.")
        elif self._browser.open():
            self._journey.forget()
            self._changed()
        else:
            self._move_to(self._browser.cursor + 1)

    def _step_out(self, _count: int | None) -> None:
        if self._panel.has_focus:
            self._tree_view.focus()
            return
        if self._browser.close():
            self._changed()
        elif not self._browser.move_out():
            self._app.say("This row is not inside anything that can be collapsed.")
        self._journey.forget()
        self._moved()

    def _open_all(self, _count: int | None) -> None:
        self._browser.open_all()
        self._journey.forget()
        self._changed()

    def _close_all(self, _count: int | None) -> None:
        self._browser.close_all()
        self._journey.forget()
        self._changed()

    def _next_copy(self, count: int | None) -> None:
        self._shift_copy(count or 1)

    def _previous_copy(self, count: int | None) -> None:
        self._shift_copy(-(count or 1))

    def _shift_copy(self, by: int) -> None:
        if self._browser.shift_copy(by):
            self._journey.forget()
            self._changed()
        else:
            self._app.say("There is no other copy. < and > work inside a repeated block.")

    # Jump.

    def _follow(self, _count: int | None) -> None:
        if not self._panel.has_focus:
            self._changed(self._journey.follow())
        elif self._panel.target is None:
            self._app.say("This line does not lead to a node.")
        else:
            self._journey.jump(self._panel.target)
            self._changed()

    def _back(self, _count: int | None) -> None:
        self._changed(self._journey.back())

    def _forward(self, _count: int | None) -> None:
        self._changed(self._journey.forward())

    def _next_hit(self, _count: int | None) -> None:
        self._changed(self._journey.next_hit(1))

    def _previous_hit(self, _count: int | None) -> None:
        self._changed(self._journey.next_hit(-1))

    def _ask_search(self, _count: int | None) -> None:
        self._app.ask("/")

    def _ask_node(self, _count: int | None) -> None:
        self._app.ask(":")

    # Other.

    def _copy(self, _count: int | None) -> None:
        self._app.copy_to_clipboard("\n".join(line.text.plain for line in self._panel.lines))
        self._app.say(f"Copied {format_count(len(self._panel.lines), 'line')}, if the terminal allows it.")

    def _warnings(self, _count: int | None) -> None:
        if self._app.warnings():
            self._panel.show(self._app.warnings())
        else:
            self._app.say("There were no warnings when the graph was recorded.")

    def _help(self, _count: int | None) -> None:
        self._app.start_helping()

    def _leave(self, _count: int | None) -> None:
        self._tree_view.focus()

    def _suspend(self, _count: int | None) -> None:
        self._app.action_suspend_process()

    def _quit(self, _count: int | None) -> None:
        self._app.exit()
