"""The console: results with colors, a pager if a page is too long for the screen, progress during slow steps."""

import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from itertools import chain, islice
from typing import TypeVar

from rich.console import Console
from rich.text import Text

from gradinspect.cli.output.printing import ReaderLeft, escape_what_cannot_be_encoded, is_silent, write_lines
from gradinspect.renderers.terminal.page import Page
from gradinspect.renderers.terminal.text import harmless
from gradinspect.units import parse_whole

MAX_CELLS = 10_000  # of a line, or lines of a screen
P = TypeVar("P", bound=Page)


class OutputConsole(Console):
    """A console that leaves to the caller what to do when its reader has gone."""

    def on_broken_pipe(self) -> None:
        """Leave it to the caller, rather than exit as rich does.

        Raises:
            ReaderLeft: Always.
        """
        raise ReaderLeft


def output_console() -> Console:
    """Return the console for results."""
    return OutputConsole(highlight=False, markup=False, emoji=False, _environ=_with_size(os.environ))


def can_print_unicode(console: Console) -> bool:
    """Return whether the output's encoding has the box-drawing characters."""
    return console.encoding.lower().replace("-", "").startswith("utf")


def terminal_page(kind: type[P], **options: bool) -> P:
    """Make a page that fits the output's width and characters.

    Args:
        kind: The class of the page.
        options: More of its arguments.
    """
    console = output_console()
    return kind(width=console.width, unicode=can_print_unicode(console), **options)


def print_lines(lines: Iterable[Text | str]) -> None:
    """Print results line by line, through a pager if they do not fit the terminal."""
    if is_silent():
        return
    console = output_console()
    escape_what_cannot_be_encoded()
    remaining = iter(lines)
    first = list(islice(remaining, console.height - 1)) if console.is_terminal else []
    if not console.is_terminal:
        write_lines(harmless(line) for line in remaining)
        return
    with _pager(console, is_long=len(first) == console.height - 1):
        for line in chain(first, remaining):
            print_line(console, line)


def print_line(console: Console, line: Text | str) -> None:
    """Print one line of a result."""
    if is_silent():
        return
    console.print(harmless(line), soft_wrap=True)


def working(what: str) -> AbstractContextManager[object]:
    """Show progress on a terminal during a slow step."""
    console = Console(stderr=True, _environ=_with_size(os.environ))
    return console.status(what) if console.is_terminal else nullcontext()


def _with_size(environment: Mapping[str, str]) -> dict[str, str]:
    """Leave out an impossible size of the terminal: rich believes any number."""
    sizes = {name: parse_whole(environment.get(name, "")) for name in ("COLUMNS", "LINES")}
    unlikely = [name for name, size in sizes.items() if size is None or not 0 < size <= MAX_CELLS]
    return {name: value for name, value in environment.items() if name not in unlikely}


def _pager(console: Console, *, is_long: bool) -> AbstractContextManager[object]:
    if not (console.is_terminal and is_long and sys.stdin.isatty()):
        return nullcontext()
    os.environ.setdefault("LESS", "-RFX")  # keep colors; quit at once if the text fits after all
    return console.pager(styles=True)
