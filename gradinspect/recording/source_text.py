"""Lines of source files, as tracebacks read them.

A program may have put something in the place of what reads files, as `mock.patch("os.stat")` does for a while. What it
has put there is not called to read a file; where `linecache` itself must look, as for a file that is in no folder, it
may be, and if that fails, there are no lines.

A program may also have replaced a file of its own since it was imported: a named pipe would be waited for, and a device
has no end. Neither has lines.
"""

import linecache
from linecache import getlines, lazycache
from os import stat
from stat import S_ISREG
from tokenize import open as open_source
from types import FrameType

from gradinspect.user_files import MAX_BYTES


def lines_of(file: str) -> list[str]:
    """Return the lines of a file, none if it cannot be read."""
    try:
        return getlines(file) if _is_read(file) or _read(file) else []
    except Exception:  # of whatever stands there
        return []


def _is_read(file: str) -> bool:
    """Return whether its lines are known, and not only who has them."""
    return len(linecache.cache.get(file, ())) > 1


def _read(file: str) -> bool:
    """Read a file of a folder as `linecache` does, which looks up in other modules what reads it.

    Returns:
        Whether `linecache` may be asked: not if the file must not be read.
    """
    if file.startswith("<") and file.endswith(">"):
        return True
    try:
        status = stat(file)  # noqa: PTH116  # `Path.stat` looks it up in `os`
        if not S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            return False
        with open_source(file) as source:
            lines = source.readlines()
    except (OSError, UnicodeDecodeError, SyntaxError, ValueError):  # no file, or no text; ValueError: no name
        return True
    if lines:
        lines[-1] = lines[-1].removesuffix("\n") + "\n"  # also of a last line without an end
        linecache.cache[file] = (status.st_size, status.st_mtime, lines, file)
    return True


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
