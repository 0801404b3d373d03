"""Read a capture file, unpacking it if needed, with a limit on memory.

What comes in: an open file. What goes out: its content, or an error as soon as it cannot be a capture file.
"""

import codecs
import gzip
import io
import zlib
from typing import BinaryIO

from gradinspect.errors import GradInspectError
from gradinspect.units import format_bytes

MAX_BYTES = 2 * 1024**3  # unpacked; a million nodes with names and lines take less than half
FREE_BYTES = 128 * 1024**2  # always allowed
MAX_RATIO = 100  # beyond that; a million equal nodes compress to a sixtieth, 2 GB of zeros to a thousandth
CHUNK_BYTES = 1024**2
GZIP_START = b"\x1f\x8b"
JSON_STARTS = b'{["-0123456789tfn'
MAKE = "Create one with `gradinspect trace SCRIPT -o run.json`."
AGAIN = "Create it again with `gradinspect trace SCRIPT -o run.json`."


def read_content(file: BinaryIO, label: str, max_bytes: int = MAX_BYTES) -> bytes | bytearray:
    """Read a file, plain or gzipped, as its first bytes say.

    Args:
        file: Open for reading; it may be endless and need not be seekable.
        label: Its quoted name in messages.
        max_bytes: Largest accepted size after unpacking.

    Raises:
        GradInspectError: It does not start like JSON, is damaged, or is too large.
        OSError: The file cannot be read.
    """
    source = _Counted(file)
    if source.start != GZIP_START:
        return _read_limited(source, source, label, max_bytes)
    try:
        with gzip.GzipFile(fileobj=source) as unpacked:
            return _read_limited(unpacked, source, label, max_bytes)
    except EOFError:
        raise GradInspectError(f"Capture file {label} is truncated: its gzip stream has no end.", AGAIN) from None
    except (gzip.BadGzipFile, zlib.error):
        raise GradInspectError(f"Capture file {label} is damaged: it cannot be unpacked.", AGAIN) from None


class _Counted(io.RawIOBase):
    """A file whose first bytes were already read, and that counts the bytes read."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self.start = file.read(len(GZIP_START))
        self.num_bytes = len(self.start)
        self._file = file
        self._waiting = self.start

    def read(self, size: int = -1, /) -> bytes:
        start, self._waiting = self._waiting, b""
        chunk = self._file.read(size if size < 0 else size - len(start))
        self.num_bytes += len(chunk)
        return start + chunk


def _read_limited(file: io.RawIOBase | gzip.GzipFile, source: _Counted, label: str, max_bytes: int) -> bytearray:
    content = bytearray()
    while chunk := file.read(CHUNK_BYTES):
        chunk = chunk if content else chunk.removeprefix(codecs.BOM_UTF8)  # some editors write it
        if not content and not chunk.lstrip().startswith(tuple(bytes([start]) for start in JSON_STARTS)):
            raise GradInspectError(f"{label} is not a capture file: it is not JSON.", MAKE)
        content += chunk
        if len(content) > max_bytes:
            raise GradInspectError(
                f"{label} holds more than {format_bytes(max_bytes)}, the size limit of a capture file.",
                "Capture a smaller step of the program.",
            )
        if len(content) > max(FREE_BYTES, MAX_RATIO * source.num_bytes):
            raise GradInspectError(
                f"{label} unpacks to more than {MAX_RATIO} times its size, which no capture does.", AGAIN
            )
    return content
