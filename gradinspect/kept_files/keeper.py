"""Put files out of the way before a program writes, moves or removes them. NOTE [Files are put back]."""

from __future__ import annotations

from contextlib import suppress
from os import (
    O_CREAT,
    O_EXCL,
    O_TRUNC,
    O_WRONLY,
    W_OK,
    X_OK,
    access,
    chmod,
    close,
    listdir,
    lstat,
    mkdir,
    rename,
    stat_result,
    unlink,
    utime,
)
from os import open as open_file
from os.path import basename, dirname, expanduser, isdir, ismount, join, lexists
from stat import S_IMODE, S_ISDIR, S_ISLNK, S_ISREG, S_IWUSR

from gradinspect.kept_files.journal import Journal
from gradinspect.kept_files.undo import copy
from gradinspect.units import format_bytes

LARGEST = 2**30  # bytes of a file that is copied, as it is to be read or appended to
ASIDE = ".gradinspect-kept-"  # begins the name of the folder that files are put in


class Keeper:
    """Keeps what one run would change; each method is called before that, with whole paths, under the lock."""

    def __init__(self, journal: Journal) -> None:
        """Set up."""
        self._journal = journal
        self._folder = f"{ASIDE}{basename(journal.path).partition('.')[0]}"

    def opened(self, path: str, flags: int) -> None:
        """Keep a file that is opened for writing; links were followed."""
        status = _status(path)
        if status is None:
            if flags & O_CREAT and isdir(dirname(path)):
                self._journal.add("made", path)
            return
        fails = flags & O_CREAT and flags & O_EXCL
        if not fails and S_ISREG(status.st_mode) and access(path, W_OK):
            self._keep(path, status, with_content=not flags & O_TRUNC)

    def moved(self, source: str, target: str) -> None:
        """Keep what is in the way of what is renamed."""
        here, there = _status(source), _status(target)
        if here is None or (there is not None and (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)):
            return
        self._journal.is_new(source, here)  # by its number, which goes along
        if there is not None:
            if S_ISDIR(here.st_mode) != S_ISDIR(there.st_mode) or _is_full(target, there):
                return  # that fails
            if not self._journal.is_new(target, there):
                self._put_aside(target)
            elif S_ISDIR(there.st_mode):
                self._journal.add("gone folder", target, there.st_dev, there.st_ino)
        self._journal.add("moved", source, target)

    def removed(self, path: str) -> None:
        """Keep a file that is removed: what is removed is an empty one."""
        status = _status(path)
        if status is None or S_ISDIR(status.st_mode) or not access(dirname(path), W_OK):
            return
        if self._journal.is_new(path, status):
            self._journal.add("gone", path, status.st_dev, status.st_ino)
        elif S_ISREG(status.st_mode) or S_ISLNK(status.st_mode):
            self._put_aside(path)
            close(open_file(path, O_WRONLY | O_CREAT | O_EXCL))
            self._note_new(path)

    def folder_made(self, path: str) -> None:
        """Note a folder that is made."""
        if not lexists(path) and isdir(dirname(path)):
            self._journal.add("made folder", path)

    def folder_removed(self, path: str, *, with_content: bool) -> None:
        """Keep a folder: what is removed is an empty one."""
        status = _status(path)
        if status is None or not S_ISDIR(status.st_mode) or ismount(path):
            return
        if self._journal.is_new(path, status):
            if not with_content and not _is_full(path, status):
                self._journal.add("gone folder", path, status.st_dev, status.st_ino)
        elif with_content or not _is_full(path, status):
            self._put_aside(path)
            mkdir(path, S_IMODE(status.st_mode))
            self._note_new(path)

    def linked(self, source: str | None, target: str) -> None:
        """Keep a file that gets another name, by which it might be written to; None if it is only pointed at."""
        status = None if source is None else _status(source)
        if source is not None and status is not None and S_ISREG(status.st_mode):
            self._keep(source, status, with_content=True)
        if not lexists(target) and isdir(dirname(target)):
            self._journal.add("made", target)

    def changed(self, path: str) -> None:
        """Keep the mode and the times of a file."""
        status = _status(path)
        if status is None or self._journal.is_new(path, status):
            return
        if S_ISREG(status.st_mode) or S_ISDIR(status.st_mode):
            self._journal.add("set", path, S_IMODE(status.st_mode), status.st_atime_ns, status.st_mtime_ns)

    def failed(self, path: str, reason: str) -> None:
        """Note a file that cannot be kept."""
        if not self._journal.has_noted("not kept", path):
            self._journal.add("not kept", path, reason)

    def _keep(self, path: str, status: stat_result, *, with_content: bool) -> None:
        """Let a copy of a file, or an empty one, take its place."""
        if self._journal.is_new(path, status) or self._journal.has_noted("not kept", path):
            return
        if with_content and status.st_size > LARGEST:
            self.failed(path, f"files of more than {format_bytes(LARGEST)} are not copied")
            return
        try:
            self._exchange(path, status, with_content=with_content)
        except OSError:  # it may be written to, and its folder may not; or it is mounted
            self._copy(path, status)

    def _exchange(self, path: str, status: stat_result, *, with_content: bool) -> None:
        aside = self._place_for(path)
        stand_in = f"{aside}.new"
        flags = O_CREAT | O_EXCL
        if with_content:
            copy(path, stand_in, flags)
        else:
            close(open_file(stand_in, O_WRONLY | flags))
        try:
            chmod(stand_in, S_IMODE(status.st_mode))
            self._journal.add("kept", path, aside)
            rename(path, aside)
            rename(stand_in, path)
        except OSError:
            with suppress(OSError):
                unlink(stand_in)
            raise
        self._note_new(path)

    def _copy(self, path: str, status: stat_result) -> None:
        """Keep a copy of a file, which the program writes to."""
        try:
            if status.st_size > LARGEST:
                self.failed(path, f"files of more than {format_bytes(LARGEST)} are not copied")
                return
            aside = self._place_for(path)
            copy(path, aside, O_CREAT | O_EXCL, S_IMODE(status.st_mode) | S_IWUSR)
            utime(aside, ns=(status.st_atime_ns, status.st_mtime_ns))
        except OSError as error:
            self.failed(path, f"it could not be copied ({error.strerror})")
            return
        self._journal.add("written", path, aside)

    def _put_aside(self, path: str) -> None:
        """Rename what is there; beside it where it cannot be moved farther, as out of a mounted folder.

        Raises:
            OSError: It cannot be renamed; then the call of the program fails, too, or it is mounted.
        """
        try:
            self._rename(path, self._place_for(path))
        except OSError:
            self._rename(path, self._place_in(dirname(path), path))

    def _rename(self, path: str, aside: str) -> None:
        self._journal.add("kept", path, aside)
        rename(path, aside)

    def _note_new(self, path: str) -> None:
        status = lstat(path)
        self._journal.add("new", path, status.st_dev, status.st_ino)

    def _place_for(self, path: str) -> str:
        """Find a name for a file that is put aside, in a folder of ours that the program is unlikely to list.

        Raises:
            OSError: No folder can be made.
        """
        return self._place_in(_top_of(path), path)

    def _place_in(self, top: str, path: str) -> str:
        folder = join(top, self._folder)
        with suppress(FileExistsError):
            mkdir(folder, 0o700)
        return join(folder, f"{len(listdir(folder))}-{basename(path)[-100:]}")


def _status(path: str) -> stat_result | None:
    try:
        return lstat(path)
    except OSError:
        return None


def _is_full(path: str, status: stat_result) -> bool:
    return S_ISDIR(status.st_mode) and bool(listdir(path))


def _top_of(path: str) -> str:
    """Return the outermost folder around a file that is on its device and may be written to; else the home folder."""
    device, found, folder = lstat(path).st_dev, None, dirname(path)
    while folder != dirname(folder):
        if lstat(folder).st_dev != device:
            break
        if access(folder, W_OK | X_OK):
            found = folder
        folder = dirname(folder)
    return found or expanduser("~")
