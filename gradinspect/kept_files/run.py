"""One command whose programs change no files, and what Python tells it of their calls. NOTE [Files are put back]."""

from __future__ import annotations

import atexit
import os
import sys
import tempfile
from _thread import RLock, get_ident
from contextlib import contextmanager, suppress
from os import (
    O_CREAT,
    O_RDWR,
    O_TRUNC,
    O_WRONLY,
    fsdecode,
    getcwd,
    getpid,
    mkdir,
    pipe,
    readlink,
    stat,
    unlink,
    waitpid,
)
from os.path import abspath, basename, dirname, exists, expanduser, join, realpath
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from gradinspect.isolation import OwnBuiltins
from gradinspect.kept_files import undo
from gradinspect.kept_files.journal import Journal
from gradinspect.kept_files.keeper import ASIDE, Keeper
from gradinspect.kept_files.problems import note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_posix_spawn: Any = getattr(os, "posix_spawn", None)
_WRITES = O_WRONLY | O_RDWR | O_TRUNC | O_CREAT
_NO_FILES = ("/dev/", "/proc/", "/sys/")
_CACHES = ("XDG_CACHE_HOME", "HF_HOME", "TORCH_HOME", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
_BESIDE_DATABASE = ("-journal", "-wal", "-shm")


class _Command:
    """This process, and those that are forked from it."""

    def __init__(self) -> None:
        self._folder = ""  # of all journals; "" until it has begun
        self._pid = 0
        self._keeper: Keeper | None = None
        self._journal = ""
        self._lock = RLock()
        self._waits = 0  # the end of a pipe whose other end all processes of this command hold
        self._is_hooked = False
        self.is_watching = False
        self.others: set[int] = set()  # threads that do not run the program
        self._not_kept: tuple[str, ...] = ()

    def begin(self) -> None:
        if self._folder or not undo.HAS_LOCKS:
            return
        self._folder = _folder_of_journals()
        self._pid = getpid()
        self._journal = join(self._folder, f"{getpid()}-{os.urandom(4).hex()}{undo.SUFFIX}")
        self._keeper = Keeper(Journal(self._journal))
        self._waits, _held = pipe()
        caches = (os.environ.get(name) for name in _CACHES)
        folders = (expanduser("~/.cache"), *(folder for folder in caches if folder))
        self._not_kept = (*_NO_FILES, *(join(realpath(folder), "") for folder in (self._folder, *folders)))
        if not self._is_hooked:  # it stays for as long as the process
            self._is_hooked = True
            sys.addaudithook(_heard)
            os.register_at_fork(after_in_child=self._forked)
        atexit.register(self._end)
        with suppress(OSError), self._unheard():
            note(*undo.recover(self._folder))

    def _forked(self) -> None:
        self._lock, here = RLock(), get_ident()
        self.others &= {here}

    def keep(self, change: Callable[[Keeper], None], *paths: str) -> None:
        """Let the keeper do its work, unless nothing at these paths is kept."""
        if self._keeper is None or any(self._is_left_out(path) for path in paths):
            return
        with self._unheard():
            is_first = not exists(self._journal)
            try:
                change(self._keeper)
            except OSError as error:
                self._keeper.failed(paths[0], f"it could not be put aside ({error.strerror})")
            if is_first and exists(self._journal):
                self._have_it_undone()

    @contextmanager
    def _unheard(self) -> Iterator[None]:
        """Hold all locks, and look at no call of this thread."""
        with self._lock:
            here = get_ident()
            is_other = here in self.others
            self.others.add(here)
            try:
                with undo.locked(self._folder):
                    yield
            finally:
                if not is_other:
                    self.others.discard(here)

    def _is_left_out(self, path: str) -> bool:
        return path.startswith(self._not_kept) or f"/{ASIDE}" in path or "/__pycache__" in path

    def _have_it_undone(self) -> None:
        """Start the process that undoes it if this one is killed."""
        if _posix_spawn is None or not sys.executable:
            return
        with suppress(OSError):
            pid = _posix_spawn(
                sys.executable,
                [sys.executable, "-I", "-S", undo.__file__, self._journal],
                {name: value for name, value in os.environ.items() if not name.startswith("COV")},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, self._waits, 0),
                    *((os.POSIX_SPAWN_OPEN, number, os.devnull, O_WRONLY, 0) for number in (1, 2)),
                ],
            )
            waitpid(pid, 0)

    def put_back(self) -> None:
        """Undo what was changed so far, in the process that has begun."""
        if not self._folder or getpid() != self._pid:
            return
        with self._unheard():
            note(*undo.undo(self._journal))

    def _end(self) -> None:
        """Undo the rest, as the process ends; the program's own exit handlers have run."""
        self.is_watching = False
        if getpid() == self._pid:
            self.put_back()
            with suppress(OSError):
                unlink(self._journal)


_command = _Command()


def begin() -> None:
    """Prepare to keep files, before programs run in this process or in forks of it."""
    _command.begin()


@contextmanager
def kept() -> Iterator[None]:
    """Keep the files of a program that runs in this thread; later, what its other threads and exit handlers write."""
    here = get_ident()
    _command.others.discard(here)
    _command.is_watching = True
    try:
        yield
    finally:
        _command.others.add(here)
        atexit.register(_command.others.discard, here)


def put_back() -> None:
    """Undo what programs have changed so far, in the process that has begun; the others leave it to that one."""
    _command.put_back()


def about_to_write(path: Any) -> None:
    """Note that a file will be written without Python, such as by torch's own writer."""
    _heard("open", (path, "wb", O_WRONLY | O_CREAT | O_TRUNC))


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    """Look at a call that Python is about to make."""
    heard = _EVENTS.get(event)
    if heard is None or not _command.is_watching or get_ident() in _command.others:
        return
    with OwnBuiltins(), suppress(Exception):  # a call of the program goes on
        heard(*arguments)


def _opened(path: Any, _mode: Any, flags: int) -> None:
    if flags & _WRITES:
        whole = realpath(_text(path))
        _command.keep(lambda keeper: keeper.opened(whole, flags), whole)


def _moved(source: Any, target: Any, source_folder: int = -1, target_folder: int = -1) -> None:
    here, there = _named(source, source_folder), _named(target, target_folder)
    _command.keep(lambda keeper: keeper.moved(here, there), here, there)


def _removed(path: Any, folder: int = -1) -> None:
    whole = _named(path, folder)
    _command.keep(lambda keeper: keeper.removed(whole), whole)


def _folder_made(path: Any, _mode: int = 0, folder: int = -1) -> None:
    whole = _named(path, folder)
    _command.keep(lambda keeper: keeper.folder_made(whole), whole)


def _folder_removed(path: Any, folder: int = -1) -> None:
    whole = _named(path, folder)
    _command.keep(lambda keeper: keeper.folder_removed(whole, with_content=False), whole)


def _tree_removed(path: Any, folder: int | None = None) -> None:
    whole = _named(path, -1 if folder is None else folder)
    _command.keep(lambda keeper: keeper.folder_removed(whole, with_content=True), whole)


def _linked(source: Any, target: Any, source_folder: int = -1, target_folder: int = -1) -> None:
    here, there = _named(source, source_folder), _named(target, target_folder)
    _command.keep(lambda keeper: keeper.linked(here, there), here, there)


def _pointed(_source: Any, target: Any, folder: int = -1) -> None:
    there = _named(target, folder)
    _command.keep(lambda keeper: keeper.linked(None, there), there)


def _cut(path: Any, _size: int = 0) -> None:
    if not isinstance(path, int):  # else it was opened before
        _opened(path, None, O_WRONLY)


def _changed(path: Any, *_values: Any) -> None:
    if not isinstance(path, int):
        whole = realpath(_text(path))
        _command.keep(lambda keeper: keeper.changed(whole), whole)


def _database_opened(database: Any) -> None:
    name = _text(database)
    if name and not name.startswith((":", "file:")):
        for ending in ("", *_BESIDE_DATABASE):
            _opened(f"{name}{ending}", None, O_RDWR | O_CREAT)


_EVENTS: dict[str, Callable[..., None]] = {
    "open": _opened,
    "os.rename": _moved,
    "os.remove": _removed,
    "os.mkdir": _folder_made,
    "os.rmdir": _folder_removed,
    "shutil.rmtree": _tree_removed,
    "os.link": _linked,
    "os.symlink": _pointed,
    "os.truncate": _cut,
    "os.chmod": _changed,
    "os.utime": _changed,
    "sqlite3.connect": _database_opened,
}


def _text(path: Any) -> str:
    """Return the name of a file.

    Raises:
        TypeError: It is the number of one that is open, or an object of the program.
    """
    if isinstance(path, bytes):
        return fsdecode(bytes.__add__(b"", path))
    return str.__str__(PurePath.__str__(path) if isinstance(path, PurePath) else path)


def _named(path: Any, folder: int) -> str:
    """Return the whole name of what is moved or removed itself, if it is a link."""
    name = _text(path)
    if folder >= 0 and not name.startswith("/"):
        name = join(readlink(f"/proc/self/fd/{folder}"), name)
    whole = name if name.startswith("/") else join(getcwd(), name)
    whole = abspath(whole)
    return join(realpath(dirname(whole)), basename(whole))


def _folder_of_journals() -> str:
    """Return the folder of all journals of this user, which nobody else may write to."""
    folder = join(tempfile.gettempdir(), f"gradinspect-kept-{os.getuid()}")
    with suppress(FileExistsError):
        mkdir(folder, 0o700)
    status = stat(folder, follow_symlinks=False)
    is_ours = status.st_uid == os.getuid() and not status.st_mode & 0o077
    return folder if is_ours else tempfile.mkdtemp(prefix="gradinspect-kept-")
