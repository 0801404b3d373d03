"""Text to the terminal: results to stdout, messages to stderr. Imports little, so `--help` needs no more."""

import os
import sys
from collections.abc import Iterable
from contextlib import suppress

from gradinspect.ranks.job import this_job
from gradinspect.units import escape_control, readable


class ReaderLeft(Exception):  # noqa: N818  # nothing went wrong
    """The reader of the output, such as head, has closed it. Rich and click would treat that as a failure."""


def is_silent() -> bool:
    """Return whether this is a rank that leaves reporting to rank 0. NOTE [One report] in `cli.running.ranks`."""
    job = this_job()
    return job is not None and not job.is_leader


def write_lines(lines: Iterable[object]) -> None:
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
    escape_what_cannot_be_encoded()
    write_lines([text.removesuffix("\n")])


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


def escape_what_cannot_be_encoded() -> None:
    """Escape characters in the user's names that the output's encoding lacks."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
