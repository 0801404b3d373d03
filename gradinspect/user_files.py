"""Read files that the user names, or that lie where we look: whole and at once, or one reason why not.

A named pipe to which nobody writes would be waited for, a device has no end, and a name may be none. All of these
become an OSError whose `strerror` completes a sentence: "'x' cannot be read: it is a device."
"""

import errno
import io
import os
import stat
import time
from pathlib import Path
from typing import Any, BinaryIO

MAX_BYTES = 64 * 1024**2  # of a file that people write
WRITER_S = 1.0  # for somebody to open the other end of a named pipe
_INHERITED = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")  # `<(command)` in a shell, which somebody writes to


def open_file(path: Path) -> BinaryIO:
    """Open a file to read its bytes.

    Raises:
        OSError: It is not a file, or cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except ValueError:  # a null byte, or a character that no name can have
        raise OSError(errno.EINVAL, "no file can have this name") from None
    try:
        _check(os.fstat(descriptor).st_mode, os.fspath(path))
        mode = os.fstat(descriptor).st_mode
        first = _first_of_pipe(descriptor) if stat.S_ISFIFO(mode) else b""
        if hasattr(os, "set_blocking") and not stat.S_ISREG(
            mode
        ):  # one that waits, as the log of the kernel, has no end
            os.set_blocking(descriptor, True)
        return io.BufferedReader(_PartlyReadFile(descriptor, first))
    except BaseException:
        os.close(descriptor)
        raise


def read_file(path: Path, max_bytes: int = MAX_BYTES) -> bytes:
    """Read the bytes of a file.

    Raises:
        OSError: It is not a file, cannot be read, or is too large.
    """
    with open_file(path) as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {max_bytes // 1024**2} MiB")
    return content


def read_text(path: Path) -> str:
    """Read a file of text, with or without the byte order mark that some editors write.

    Raises:
        OSError: As in `read_file`.
        UnicodeDecodeError: It is not UTF-8.
    """
    return read_file(path).decode("utf-8-sig")


def _check(mode: int, name: str) -> None:
    """Check that something has an end.

    Raises:
        OSError: It may have none.
    """
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a directory")
    if stat.S_ISREG(mode) or name.startswith(_INHERITED) or name == os.devnull:
        return
    if not stat.S_ISFIFO(mode):
        raise OSError(errno.EINVAL, "it is a device")


def _first_of_pipe(descriptor: int) -> bytes:
    """Wait until somebody writes to a pipe, and return what there is by then.

    Raises:
        OSError: Nobody does.
    """
    until = time.monotonic() + WRITER_S
    while True:
        try:
            first = os.read(descriptor, 1)
        except BlockingIOError:  # there is somebody
            return b""
        if first:
            return first
        if time.monotonic() > until:
            raise OSError(errno.EINVAL, "it is a named pipe to which nobody writes")
        time.sleep(WRITER_S / 100)


class _PartlyReadFile(io.FileIO):
    """A file of which some bytes were already read."""

    def __init__(self, descriptor: int, first: bytes) -> None:
        super().__init__(descriptor)
        self._first = first

    def readinto(self, buffer: Any, /) -> int:  # noqa: ANN401  # a view of what BufferedReader fills
        if not self._first:
            return self._read_next(buffer)
        size = len(self._first)
        buffer[:size], self._first = self._first, b""
        return size

    def _read_next(self, buffer: Any) -> int:  # noqa: ANN401  # as above
        size = super().readinto(buffer)
        if size is None:
            raise OSError(errno.EINVAL, "it has no end")
        return size
