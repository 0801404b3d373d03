"""Undo what a journal lists, the last entry first.

Run as a script, this file is the process that waits until all others of a run have ended, and then does it; so it
imports nothing of ours.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager, suppress
from errno import ENOTEMPTY
from json import dumps, loads
from os import (
    O_CREAT,
    O_RDONLY,
    O_RDWR,
    O_TRUNC,
    O_WRONLY,
    _exit,
    chdir,
    chmod,
    close,
    kill,
    listdir,
    lstat,
    mkdir,
    rename,
    replace,
    rmdir,
    stat_result,
    truncate,
    unlink,
    utime,
    write,
)
from os import open as open_file
from os import read as read_part
from os.path import dirname, exists, join, lexists
from stat import S_IMODE, S_ISDIR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

try:
    from fcntl import LOCK_EX, LOCK_NB, flock, lockf
    from os import fork, setsid
except ImportError:  # Windows, where nothing is kept
    lockf = None  # type: ignore[assignment]
HAS_LOCKS = lockf is not None

SUFFIX = ".journal"
LOCK = "lock"
WAITS = ".waits"  # ends the name of the file that is locked by the process which waits to undo a journal
_CHUNK = 2**20


@contextmanager
def locked(folder: str) -> Iterator[None]:
    """Hold the lock of all journals. It is of the process: one thread at a time may ask for it."""
    descriptor = open_file(join(folder, LOCK), O_RDWR | O_CREAT, 0o600)
    try:
        lockf(descriptor, LOCK_EX)
        yield
    finally:
        close(descriptor)


def entries_of(content: bytes) -> list[list[Any]]:
    """Read a journal; a last line that was not written to its end does not count: nothing was done yet."""
    return [loads(line) for line in content.split(b"\n")[:-1]]


def read(path: str) -> bytes:
    """Read a file; empty if there is none."""
    try:
        descriptor = open_file(path, O_RDONLY)
    except OSError:
        return b""
    try:
        return read_all(descriptor)
    finally:
        close(descriptor)


def read_all(descriptor: int) -> bytes:
    """Read an open file to its end."""
    parts = []
    while part := read_part(descriptor, _CHUNK):
        parts.append(part)
    return b"".join(parts)


def copy(source: str, target: str, flags: int, mode: int = 0o600) -> None:
    """Copy the bytes of a file."""
    reads = open_file(source, O_RDONLY)
    try:
        writes = open_file(target, O_WRONLY | flags, mode)
        try:
            while part := read_part(reads, _CHUNK):
                while part:
                    part = part[write(writes, part) :]
        finally:
            close(writes)
    finally:
        close(reads)


def undo(journal: str) -> list[str]:
    """Undo a journal and empty it, or hand it over to another run that uses the same files. Call it with the lock.

    Returns:
        A sentence about each file that is not as it was.
    """
    entries = entries_of(read(journal))
    if not entries:
        return []
    other = _other_user(journal, {str(entry[1]) for entry in entries})
    if other is not None:
        _write(other, [*entries, *entries_of(read(other))])
        truncate(journal, 0)
        return []
    problems = []
    known = {(words[1], words[2]) for kind, *words in entries if kind == "new"}
    for kind, *words in reversed(entries):
        with suppress(OSError):
            is_foreign = kind == "kept" and _is_foreign(words[0], words[1], known)
            problem = _not_ours(*words) if is_foreign else _UNDOES[kind](*words)
            if problem:
                problems.append(problem)
        status = None if _UNDOES[kind] is _nothing else _status(words[0])  # of what was put or made there again
        known |= set() if status is None else {(status.st_dev, status.st_ino)}
    truncate(journal, 0)
    for folder in {dirname(words[1]) for kind, *words in entries if kind in ("kept", "written")}:
        with suppress(OSError):  # there is something in it that could not be put back
            rmdir(folder)
    return list(dict.fromkeys(reversed(problems)))


def _is_foreign(path: str, aside: str, known: set[tuple[int, int]]) -> bool:
    """Return whether something else has taken the place of a file: a program outside of this run put it there."""
    status = _status(path)
    return status is not None and lexists(aside) and (status.st_dev, status.st_ino) not in known


def _status(path: Any) -> stat_result | None:
    try:
        return lstat(path)
    except (OSError, TypeError, ValueError):  # what an entry begins with need not be a path
        return None


def _not_ours(path: str, aside: str) -> str:
    return f'"{path}" was replaced by another program meanwhile, and is left: what was there before is in "{aside}".'


def recover(folder: str) -> list[str]:
    """Undo the journals of runs that were killed together with what was to undo them. Call it with the lock.

    Returns:
        A sentence about each file that is not as it was.
    """
    problems = []
    for name in sorted(listdir(folder)):
        path = join(folder, name)
        if name.endswith(SUFFIX) and not _is_alive(int(name.partition("-")[0])) and not _is_waited_for(path):
            problems += undo(path)
            unlink(path)
            with suppress(OSError):
                unlink(f"{path}{WAITS}")
    return problems


def _is_waited_for(journal: str) -> bool:
    """Return whether a process waits to undo a journal: it holds a lock for as long as it lives."""
    try:
        descriptor = open_file(f"{journal}{WAITS}", O_RDWR)
    except OSError:
        return False
    try:
        flock(descriptor, LOCK_EX | LOCK_NB)
    except OSError:
        return True
    else:
        return False
    finally:
        close(descriptor)


def _write(journal: str, entries: list[list[Any]]) -> None:
    """Replace a journal: one that is killed meanwhile leaves the old one."""
    temporary = f"{journal}.new"
    descriptor = open_file(temporary, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    write(descriptor, b"".join(dumps(entry).encode() + b"\n" for entry in entries))
    close(descriptor)
    replace(temporary, journal)


def other_journals(journal: str) -> Iterator[str]:
    """Yield the journals of other runs that go on: its process is the first number of a name."""
    folder = dirname(journal)
    for name in sorted(listdir(folder)):
        path = join(folder, name)
        if name.endswith(SUFFIX) and path != journal and _is_alive(int(name.partition("-")[0])):
            yield path


def _is_alive(pid: int) -> bool:
    try:
        kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # of somebody else
    return True


def _other_user(journal: str, paths: set[str]) -> str | None:
    for other in other_journals(journal):
        if any(entry[1] in paths for entry in entries_of(read(other))):
            return other
    return None


def _put_back(path: str, aside: str) -> str | None:
    if not lexists(aside):
        return None
    try:
        replace(aside, path)
    except OSError as error:
        return f'"{path}" could not be put back ({error.strerror}): it is in "{aside}".'
    return None


def _write_back(path: str, aside: str) -> str | None:
    if not lexists(aside):
        return None
    status = lstat(aside)
    try:
        copy(aside, path, O_CREAT | O_TRUNC, S_IMODE(status.st_mode))
        utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    except OSError as error:
        return f'"{path}" could not be put back ({error.strerror}): it is in "{aside}".'
    unlink(aside)
    return None


def _unmake(path: str) -> None:
    if lexists(path) and not S_ISDIR(lstat(path).st_mode):
        unlink(path)


def _unmake_folder(path: str) -> str | None:
    try:
        rmdir(path)
    except OSError as error:
        if error.errno == ENOTEMPTY:
            return f'"{path}" was made by the program, and is left: it has files that were written without Python.'
    return None


def _make_again(path: str, _device: int, _number: int) -> None:
    mkdir(path)  # what was moved or put away from there goes back into it


def _move_back(source: str, target: str) -> None:
    if lexists(target) and not lexists(source):
        rename(target, source)


def _set_back(path: str, mode: int, accessed: int, modified: int) -> None:
    chmod(path, mode)
    utime(path, ns=(accessed, modified))


def _not_kept(path: str, reason: str) -> str:
    return f'"{path}" was written by the program, and is not as it was before: {reason}.'


def _nothing(*_words: object) -> None:
    """Do nothing: the entry is about what stands where."""


_UNDOES: dict[str, Callable[..., str | None]] = {
    "kept": _put_back,
    "written": _write_back,
    "made": _unmake,
    "made folder": _unmake_folder,
    "gone folder": _make_again,
    "moved": _move_back,
    "set": _set_back,
    "not kept": _not_kept,
    "begun": _nothing,
    "shared": _nothing,
    "new": _nothing,
    "gone": _nothing,
}


def _wait_and_undo(journal: str) -> None:
    """Wait, in a process without a parent, until the other end of stdin is closed everywhere, and undo."""
    if fork():
        _exit(0)
    with suppress(OSError):
        setsid()  # what ends a whole group of processes leaves this one
    chdir("/")
    with locked(dirname(journal)):
        flock(open_file(f"{journal}{WAITS}", O_RDWR | O_CREAT, 0o600), LOCK_EX)  # open until this process ends
    while read_part(0, 1):
        pass
    with locked(dirname(journal)):
        if exists(journal):
            undo(journal)
            unlink(journal)
        with suppress(OSError):
            unlink(f"{journal}{WAITS}")


if __name__ == "__main__":
    _wait_and_undo(sys.argv[1])
