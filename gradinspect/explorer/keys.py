"""The keys of the explorer, following less and vim, and the help page.

What comes in: pressed keys. What goes out: commands.
"""

from collections.abc import Iterator
from typing import NamedTuple

from rich.text import Text

from gradinspect.renderers.terminal.page import Page

KEYS_CELLS = 20
SEARCH = (
    "A search matches all its words, ignoring case: a node number (#17), a class, a parameter name, a module, a source "
    "line, a dtype, a shape. In a shape, * matches any size: f32[*, 768]."
)


class Command(NamedTuple):
    """What to do, with a count or a number."""

    name: str
    number: int | None = None


class Binding(NamedTuple):
    """The keys of one command."""

    keys: tuple[str, ...]  # textual's names; two letters are a sequence
    name: str
    shown: str = ""
    text: str = ""


GROUPS: tuple[tuple[str, tuple[Binding, ...]], ...] = (
    ("move", (
        Binding(("j", "down", "ctrl+n"), "down", "j  Down", "one row down; 5j five rows"),
        Binding(("k", "up", "ctrl+p"), "up", "k  Up", "one row up"),
        Binding(("ctrl+d", "d"), "half_down", "d  Ctrl-d", "half a screen down"),
        Binding(("ctrl+u", "u"), "half_up", "u  Ctrl-u", "half a screen up"),
        Binding(("space", "f", "ctrl+f", "pagedown"), "page_down", "Space  f", "a screen down"),
        Binding(("b", "ctrl+b", "pageup"), "page_up", "b", "a screen up"),
        Binding(("g", "gg", "home"), "first", "g  Home", "to the first row"),
        Binding(("G", "end"), "last", "G  End", "to the last row; 17G to node #17"),
        Binding(("tab", "shift+tab"), "switch", "Tab", "to the panel and back"),
    )),
    ("expand and collapse", (
        Binding(("enter",), "enter", "Enter", "expand or collapse; follow a reference; else to the panel"),
        Binding(("o", "za"), "toggle", "o", "expand or collapse"),
        Binding(("l", "right", "zo"), "step_in", "l  Right", "expand, or go inside; in the panel follow the line"),
        Binding(("h", "left", "zc"), "step_out", "h  Left", "collapse, or go out; from the panel to the tree"),
        Binding(("zR",), "open_all", "zR", "expand everything"),
        Binding(("zM",), "close_all", "zM", "collapse everything"),
        Binding((">",), "next_copy", ">", "next copy of the repeat around this row"),
        Binding(("<",), "previous_copy", "<", "previous copy"),
    )),
    ("jump", (
        Binding(("]", "gd", "ctrl+right_square_bracket"), "follow", "]  gd", "follow the row's reference, such as #12"),
        Binding(("ctrl+o", "backspace", "H"), "back", "Ctrl-o  H", "back to where you jumped from"),
        Binding(("ctrl+i", "L"), "forward", "L", "forward again; Ctrl-i if it is not Tab"),
        Binding((":", "#"), "ask_node", ":17  #17", "to node #17"),
        Binding(("/",), "ask_search", "/words", "search: names, classes, shapes, lines: model.py:41"),
        Binding(("n",), "next_hit", "n", "next hit"),
        Binding(("N",), "previous_hit", "N", "previous hit"),
    )),
    ("else", (
        Binding(("zz",), "center", "zz", "row to the middle of the screen"),
        Binding(("y",), "copy", "y", "copy the panel, if the terminal allows it"),
        Binding(("w",), "warnings", "w", "warnings of the capture"),
        Binding(("?", "f1"), "help", "?", "this page"),
        Binding(("escape",), "leave", "Esc", "to the tree"),
        Binding(("ctrl+z",), "suspend", "Ctrl-z", "back to the shell for a while; fg returns"),
        Binding(("q", "ctrl+c"), "quit", "q", "quit"),
    )),
)  # fmt: skip
COMMANDS = {key: binding.name for _, bindings in GROUPS for binding in bindings for key in binding.keys}
PREFIXES = {key[0] for key in COMMANDS if len(key) == 2}


class KeyReader:
    """Combines keys: counts, and sequences such as `zR`."""

    def __init__(self) -> None:
        """Start with no key pressed."""
        self._digits = ""
        self._prefix = ""

    def read(self, key: str) -> Iterator[Command]:
        """Read one key; yield the command it completes.

        `g` alone acts immediately, as in less; a following `d` undoes it, so that `gd` works as in vim.
        """
        pair, self._prefix = self._prefix + key, ""
        if len(pair) == 2 and pair in COMMANDS and pair[0] in PREFIXES:
            if pair[0] in COMMANDS and pair != "gg":
                yield Command("take_back")
            yield Command(COMMANDS[pair])
            return
        if key.isdecimal() and key.isascii() and (self._digits or key != "0"):
            self._digits += key
            return
        count, self._digits = int(self._digits[:9]) if self._digits else None, ""
        if key in PREFIXES:
            self._prefix = key
        if key in COMMANDS:
            yield Command(COMMANDS[key], count)


class HelpPage(Page):
    """Writes the keys at one width."""

    def lines(self) -> Iterator[Text]:
        """Yield the page."""
        for title, bindings in GROUPS:
            yield Text(title, "bold underline")
            for binding in bindings:
                line = Text().append(f"  {binding.shown:<{KEYS_CELLS - 2}}", "cyan")
                yield line.append(self.fit(binding.text, self.width - KEYS_CELLS))
            yield Text()
        yield from self.wrapped(SEARCH)
