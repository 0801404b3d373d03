"""The journal of one run, and what those of all runs say of files: which ones are not originals."""

from __future__ import annotations

from json import dumps
from os import O_APPEND, O_CREAT, O_RDONLY, O_WRONLY, SEEK_SET, close, fstat, getpid, lseek, read, stat_result, write
from os import open as open_file
from time import monotonic_ns
from typing import Any

from gradinspect.kept_files.undo import entries_of, other_journals, read_all

_HEAD_SIZE = 54  # bytes of the first entry: whether a journal was emptied, and begun again


class Journal:
    """Reads and writes under the lock of all journals, which its callers hold."""

    def __init__(self, path: str) -> None:
        """Set up.

        Args:
            path: Of the file, in the folder of all journals; need not be there.
        """
        self.path = path
        self._known: dict[str, _Known] = {}

    def add(self, kind: str, *words: Any) -> None:
        """Write an entry, before what it undoes is done."""
        descriptor = open_file(self.path, O_WRONLY | O_APPEND | O_CREAT, 0o600)
        try:
            if not fstat(descriptor).st_size:
                write(descriptor, dumps(("begun", f"{getpid():016d}{monotonic_ns():024d}")).encode() + b"\n")
            write(descriptor, dumps((kind, *words)).encode() + b"\n")
        finally:
            close(descriptor)

    def is_new(self, path: str, status: stat_result) -> bool:
        """Return whether what is there was put there by a run; if by another one only, this run shares it."""
        own = self._read(self.path)
        if own.is_new(path, status):
            if path in own.made:
                self.add("new", path, status.st_dev, status.st_ino)
            return True
        if any(self._read(other).is_new(path, status) for other in other_journals(self.path)):
            self.add("shared", path)
            return True
        return False

    def has_noted(self, kind: str, path: str) -> bool:
        """Return whether there is such an entry of this file."""
        return (kind, path) in self._read(self.path).noted

    def _read(self, path: str) -> _Known:
        """Read what was written to a journal since the last time."""
        try:
            descriptor = open_file(path, O_RDONLY)
        except OSError:
            return _Known(b"")
        try:
            head = read(descriptor, _HEAD_SIZE)
            known = self._known.get(path)
            if known is None or known.head != head:
                known = self._known[path] = _Known(head)
            lseek(descriptor, known.num_read, SEEK_SET)
            known.take(read_all(descriptor))
        finally:
            close(descriptor)
        return known


class _Known:
    """What was read of one journal."""

    def __init__(self, head: bytes) -> None:
        self.head = head
        self.num_read = 0  # bytes
        self.made: set[str] = set()  # was not there when it was opened to be made
        self.noted: set[tuple[str, str]] = set()
        self._places: set[tuple[int, int]] = set()  # device, and number there

    def take(self, content: bytes) -> None:
        self.num_read += content.rfind(b"\n") + 1
        for kind, path, *words in entries_of(content):
            self._take(kind, path, words)

    def _take(self, kind: str, path: str, words: list[Any]) -> None:
        match kind:
            case "new":
                self._places.add((words[0], words[1]))
                self.made.discard(path)
            case "gone" | "gone folder":
                self._places.discard((words[0], words[1]))
                self.made.discard(path)
            case "made" | "made folder":
                self.made.add(path)
            case "moved":
                self.made.discard(words[0])
            case _:
                self.noted.add((kind, path))

    def is_new(self, path: str, status: stat_result) -> bool:
        is_noted = path in self.made or ("written", path) in self.noted
        return is_noted or (status.st_dev, status.st_ino) in self._places
