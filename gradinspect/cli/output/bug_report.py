"""Report a bug of ours: one sentence, and below it what a developer needs to find it."""

import platform
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from gradinspect.errors import INTERNAL_ERROR, InternalError, text_of
from gradinspect.units import brief, escape_control

MAX_CHARACTERS = 500  # of a line: an error may quote all that it was given
_OURS = Path(__file__).parents[2]


def report_bug(error: BaseException, say: Callable[[str], None]) -> int:
    """Say that we failed, print the traceback, and return the exit code.

    Args:
        error: What was raised.
        say: Prints the sentence, or leaves it to rank 0 of a job.
    """
    with suppress(Exception):  # the streams may be closed
        say(f"{bug_sentence(error)} Please report it to its developers, with the traceback and versions printed here.")
    with suppress(Exception):
        for line in (*_trace_of(error).splitlines(), versions_of_all()):
            print(brief(line, MAX_CHARACTERS), file=sys.stderr)
    return INTERNAL_ERROR


def bug_sentence(error: BaseException) -> str:
    """Say what failed where, in one sentence."""
    if isinstance(error, InternalError):
        return escape_control(str(error))
    text = " ".join(text_of(error).split())
    what = f"{type(error).__name__}: {brief(text)}" if text else type(error).__name__
    return f"gradinspect itself failed{_place_of(error)}, and not the program: {what.rstrip('.')}."


def _place_of(error: BaseException) -> str:
    """Name the last line of ours: ` at cli/trace.py:12`."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(_OURS)]
    return f" at {Path(ours[-1].filename).relative_to(_OURS).as_posix()}:{ours[-1].lineno}" if ours else ""


def _trace_of(error: BaseException) -> str:
    return error.trace if isinstance(error, InternalError) else "".join(traceback.format_exception(error))


def versions_of_all() -> str:
    """Write the versions for a bug report, without importing torch."""
    ours, torch = (f"{package} {version_of(package)}" for package in ("gradinspect", "torch"))
    return f"{ours}, Python {platform.python_version()}, {torch}"


def version_of(package: str) -> str:
    """Return the version of a package; it may run from its folder."""
    from importlib import metadata  # noqa: PLC0415  # it imports what --help need not wait for

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
