"""Terminal output: results to stdout, messages to stderr, a pager if a page is too long for the screen."""

import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import chain, islice
from typing import TYPE_CHECKING, TypeVar

from gradinspect.ranks.job import this_job
from gradinspect.units import escape_control, parse_whole, readable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from gradinspect.renderers.terminal.page import Page

MAX_CELLS = 10_000  # of a line, or lines of a screen
P = TypeVar("P", bound="Page")


class ReaderLeft(Exception):  # noqa: N818  # nothing went wrong
    """The reader of the output, such as head, has closed it. Rich and click would treat that as a failure."""


def is_silent() -> bool:
    """Return whether this is a rank that leaves reporting to rank 0. NOTE [One report] in `cli.running.ranks`."""
    job = this_job()
    return job is not None and not job.is_leader


def output_console() -> "Console":
    """Return the console for results."""
    from gradinspect.cli.output.console import OutputConsole  # noqa: PLC0415  # what --help need not wait for

    return OutputConsole(highlight=False, markup=False, emoji=False, _environ=_with_size(os.environ))


def can_print_unicode(console: "Console") -> bool:
    """Return whether the output's encoding has the box-drawing characters."""
    return console.encoding.lower().replace("-", "").startswith("utf")


def terminal_page(kind: "type[P]", **options: bool) -> "P":
    """Make a page that fits the output's width and characters.

    Args:
        kind: The class of the page.
        options: More of its arguments.
    """
    console = output_console()
    return kind(width=console.width, unicode=can_print_unicode(console), **options)


def print_lines(lines: "Iterable[Text | str]") -> None:
    """Print results line by line, through a pager if they do not fit the terminal."""
    from gradinspect.renderers.terminal.text import harmless  # noqa: PLC0415  # what --help need not wait for

    if is_silent():
        return
    console = output_console()
    _escape_what_cannot_be_encoded()
    remaining = iter(lines)
    first = list(islice(remaining, console.height - 1)) if console.is_terminal else []
    if not console.is_terminal:
        _write(harmless(line) for line in remaining)
        return
    with _pager(console, is_long=len(first) == console.height - 1):
        for line in chain(first, remaining):
            print_line(console, line)


def print_line(console: "Console", line: "Text | str") -> None:
    """Print one line of a result."""
    from gradinspect.renderers.terminal.text import harmless  # noqa: PLC0415  # what --help need not wait for

    if is_silent():
        return
    console.print(harmless(line), soft_wrap=True)


def _write(lines: "Iterable[Text | str]") -> None:
    """Write lines without colors, bypassing Rich: a tree may have a million lines."""
    if sys.stdout is None:  # it was closed, and `print` would say nothing either
        return
    try:
        for line in lines:
            sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise ReaderLeft from None


def print_text(text: str) -> None:
    """Print a text unchanged: JSON, CSV, Markdown."""
    if is_silent():
        return
    _escape_what_cannot_be_encoded()
    _write([text.removesuffix("\n")])


def print_message(text: str) -> None:
    """Print a message that is not a result."""
    if is_silent():
        return
    with suppress(OSError, ValueError):  # there is nowhere to print it
        print(escape_control(text), file=sys.stderr)


def print_problem(text: str, *, even_if_silent: bool = False) -> None:
    """Print what is wrong and what to do, in one paragraph.

    Args:
        text: The sentences.
        even_if_silent: Because rank 0 of the job cannot say it.
    """
    if is_silent() and not even_if_silent:
        return
    with suppress(OSError, ValueError, AttributeError):  # closed, or missing
        sys.stdout.flush()
    with suppress(OSError, ValueError):
        print(f"gradinspect: {readable(text)}", file=sys.stderr)


def finish_output() -> OSError | None:
    """Flush stdout, and return its error, if any, once: afterwards stdout is redirected to nowhere."""
    try:
        sys.stdout.flush()
    except OSError as error:
        with suppress(OSError, ValueError, AttributeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return error
    except (ValueError, AttributeError):  # it is closed or missing
        return None
    return None


def is_watched() -> bool:
    """Return whether messages go to a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


def working(what: str) -> AbstractContextManager[object]:
    """Show progress on a terminal during a slow step."""
    from rich.console import Console  # noqa: PLC0415  # what --help need not wait for

    console = Console(stderr=True, _environ=_with_size(os.environ))
    return console.status(what) if console.is_terminal else nullcontext()


def _with_size(environment: "Mapping[str, str]") -> dict[str, str]:
    """Leave out a size of the terminal that none has: rich believes any number."""
    sizes = {name: parse_whole(environment.get(name, "")) for name in ("COLUMNS", "LINES")}
    unlikely = [name for name, size in sizes.items() if size is None or not 0 < size <= MAX_CELLS]
    return {name: value for name, value in environment.items() if name not in unlikely}


def _escape_what_cannot_be_encoded() -> None:
    """Escape characters in the user's names that the output's encoding lacks."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")


def _pager(console: "Console", *, is_long: bool) -> AbstractContextManager[object]:
    if not (console.is_terminal and is_long and sys.stdin.isatty()):
        return nullcontext()
    os.environ.setdefault("LESS", "-RFX")  # keep colors; quit at once if the text fits after all
    return console.pager(styles=True)
