"""Lines of source files, as tracebacks read them.

A program may have put something in the place of what reads files, as `mock.patch("os.stat")` does for a while. What it
has put in the place of `linecache.getlines` is not called; if reading fails, there are no lines.
"""

from linecache import getlines, lazycache
from types import FrameType


def lines_of(file: str) -> list[str]:
    """Return the lines of a file, none if it cannot be read."""
    try:
        return getlines(file)
    except Exception:  # of whatever stands there
        return []


def line_of(file: str, line: int) -> str:
    """Return a line of a file without the spaces around it, empty if there is none."""
    lines = lines_of(file)
    return lines[line - 1].strip() if 1 <= line <= len(lines) else ""


def remember_loader(frame: FrameType) -> None:
    """Let lines be read of a file that no folder has, as one in a zip file, from its module's loader."""
    try:
        lazycache(frame.f_code.co_filename, frame.f_globals)
    except Exception:
        return
