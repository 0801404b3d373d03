"""Temporary files that a later run removes if their process is gone.

NOTE [Abandoned files]
A killed process leaves its temporary file behind. While alive it holds a lock on the file, which the system releases
with the process, so an unlocked file is abandoned. Where files cannot be locked, their age decides.
"""

import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

NAME = re.compile(r"\.gradinspect-[0-9a-f]{16}\.tmp")
OLD_S = 24 * 3600.0


@contextmanager
def temporary_file(folder: Path) -> Iterator[tuple[Path, int]]:
    """Create a file in a folder to write and then rename; remove it at the end if it is still there.

    It has the mode of an ordinary new file, subject to the umask; `tempfile` would make it private.

    Yields:
        Its path, and a descriptor that the caller closes.
    """
    path, descriptor = _new_file(folder)
    lock = None if fcntl is None else os.dup(descriptor)  # keeps the lock after the caller closes the other
    try:
        yield path, descriptor
    finally:
        path.unlink(missing_ok=True)
        if lock is not None:
            os.close(lock)


def _new_file(folder: Path) -> tuple[Path, int]:
    while True:
        path = folder / f".gradinspect-{secrets.token_hex(8)}.tmp"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        if fcntl is not None:
            with suppress(OSError):  # the file system has no locks
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if path.exists():  # else another run removed it just before it was locked
            return path, descriptor
        os.close(descriptor)


def remove_leftovers(folder: Path) -> None:
    """Remove the abandoned temporary files in a folder: NOTE [Abandoned files]."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in [entry.path for entry in entries if NAME.fullmatch(entry.name)]:
            with suppress(OSError):  # another user's, or already gone
                _remove_if_abandoned(Path(entry))


def _remove_if_abandoned(path: Path) -> None:
    if fcntl is None:
        if _is_old(path.lstat()):
            path.unlink()
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode) and _is_free(descriptor):
            path.unlink()
    finally:
        os.close(descriptor)


def _is_free(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # the file system has no locks
        return _is_old(os.fstat(descriptor))
    return True


def remove_old_folders(parent: Path, prefix: str, suffix: str) -> None:
    """Remove our folders from earlier days that contain only files of one kind.

    Args:
        parent: The folder they are in, which others may write to.
        prefix: The prefix of their names.
        suffix: The suffix of the files in them.
    """
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in [entry for entry in entries if entry.name.startswith(prefix)]:
            with suppress(OSError):
                _remove_if_old(Path(entry.path), suffix)


def _remove_if_old(folder: Path, suffix: str) -> None:
    status = folder.lstat()
    is_ours = not hasattr(os, "getuid") or status.st_uid == os.getuid()
    if not (stat.S_ISDIR(status.st_mode) and is_ours and _is_old(status)):
        return
    files = list(folder.iterdir())
    if all(stat.S_ISREG(file.lstat().st_mode) and file.name.endswith((suffix, ".tmp")) for file in files):
        for file in files:
            file.unlink()
        folder.rmdir()


def _is_old(status: os.stat_result) -> bool:
    return time.time() - status.st_mtime > OLD_S
