"""Where the ranks of a job meet: a folder of small files, each written by one rank.

NOTE [Where ranks meet]
Not in the program's process group: a collective of ours would come between its own, and could not tell why another rank
is late. Not in the store of the launcher either: only torchrun has one, and it answers nothing about a process that was
killed. A folder needs no library and no port, works under every launcher, and survives the death of any rank.
Rank 0 makes a new folder for each run, and names it in a file whose name follows from the job. The others follow this
pointer only while rank 0 is alive, so that they never read the files of an earlier run. By default it is in the
temporary folder, in one that only this user can read; across hosts, the user names a folder that all of them share.
"""

import _thread
import errno
import os
import shutil
import socket
import stat
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import asdict

from gradinspect.graph import Record
from gradinspect.ranks.job import FOLDER, Job
from gradinspect.ranks.records import State
from gradinspect.units import escape_control

HOST = socket.gethostname()
_USUAL_FOLDERS = ("/tmp", "/var/tmp", "/usr/tmp") if os.name == "posix" else ()  # noqa: S108  # as `tempfile` has them
R = TypeVar("R", bound=Record)


class _Pointer(Record, frozen=True):
    """What rank 0 leaves for the others to find."""

    folder: str
    pid: int
    host: str
    started: str


class Meeting:
    """The folder of one run, as one of its ranks sees it."""

    def __init__(self, job: Job) -> None:
        """Set up; nothing is read or written yet."""
        self._job = job
        self._folder: Path | None = None
        self._earlier_beat: bytes | None = None
        self._has_left = False
        self._has_looked = False
        self.problem = ""  # why the ranks cannot meet, in one sentence

    @property
    def is_open(self) -> bool:
        """Whether this rank has found the folder."""
        return self._folder is not None

    def connect(self) -> bool:
        """Make the folder as rank 0, or look for it as another; return whether it is there."""
        if self._folder is None and not self._has_left:
            try:
                base = base_folder(self._job)
                self._folder = self._opened(base) if self._job.is_leader else self._found(base)
            except OSError as error:
                self._note(error)
        return self.is_open

    def _note(self, error: OSError) -> None:
        where = self._job.folder or _temporary_folder()
        self.problem = f"The ranks cannot meet in '{where}': {error.strerror}. Name a folder: {FOLDER}=FOLDER."

    def _opened(self, base: Path) -> Path:
        _remove_ended_runs(base)
        folder = Path(tempfile.mkdtemp(prefix=f"{self._job.key}-", dir=base))
        pid = os.getpid()
        pointer = _Pointer(folder.name, pid, HOST, started_at(pid))
        try:
            _write(base / f"{self._job.key}.json", msgspec.json.encode(pointer))
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return folder

    def _found(self, base: Path) -> Path | None:
        """Look for the folder of rank 0.

        Raises:
            OSError: There is no room for a file. Rank 0 will find none either, and end, so this rank has to end, too.
        """
        with suppress(OSError, msgspec.DecodeError):
            folder = self._pointed_at(base)
            if folder is not None:
                return folder
        if not self._has_looked:
            self._has_looked = True
            trial = base / f".{self._job.key}.{self._job.rank}.{os.getpid()}"
            try:
                trial.write_bytes(b"1")
            finally:
                trial.unlink(missing_ok=True)
        return None

    def _pointed_at(self, base: Path) -> Path | None:
        pointer = msgspec.json.decode((base / f"{self._job.key}.json").read_bytes(), type=_Pointer)
        folder = base / Path(pointer.folder).name
        if pointer.host == HOST:
            return folder if is_running(pointer.pid, pointer.started) else None
        beat = (folder / "state.0").read_bytes()  # of a process that cannot be looked up from here
        before, self._earlier_beat = self._earlier_beat, beat
        return folder if before not in (None, beat) else None

    def put(self, name: str, content: Record | bytes) -> None:
        """Leave a file for the others, whole or not at all."""
        if self._folder is not None:
            try:
                _write(self._folder / name, content if isinstance(content, bytes) else _encoded(content))
            except OSError as error:
                self._note(error)
                with suppress(OSError):
                    (self._folder / f"lost.{self._job.rank}").touch()  # an empty file, for which a full disk has room

    def get(self, name: str) -> bytes | None:
        """Return a file that a rank has left, None if there is none."""
        try:
            return None if self._folder is None else (self._folder / name).read_bytes()
        except OSError:
            return None

    def read(self, name: str, kind: type[R]) -> R | None:
        """Return a record that a rank has left."""
        content = self.get(name)
        try:
            return None if content is None else msgspec.json.decode(content, type=kind)
        except msgspec.DecodeError:
            return None

    def leave(self, gone: Sequence[int] = ()) -> None:
        """Say that this rank no longer needs the folder; the last one removes it.

        Args:
            gone: Ranks that have ended without saying so.
        """
        folder, self._folder, self._has_left = self._folder, None, True
        if folder is None:
            return
        with suppress(OSError):
            for rank in (self._job.rank, *gone):
                (folder / f"left.{rank}").touch()
            names = {path.name for path in folder.iterdir()}
            came = {name.partition(".")[2] for name in names if name.startswith("state.")}
            if all(f"left.{rank}" in names for rank in came):
                shutil.rmtree(folder, ignore_errors=True)
            if self._job.is_leader:
                (folder.parent / f"{self._job.key}.json").unlink(missing_ok=True)


def base_folder(job: Job) -> Path:
    """Return the folder that holds those of all runs, which only this user can read.

    Raises:
        OSError: It cannot be made, or belongs to somebody else, who could read and write what the ranks say.
    """
    base = Path(job.folder or _temporary_folder()) / f"gradinspect-ranks-{getattr(os, 'getuid', int)()}"
    base.mkdir(mode=0o700, parents=bool(job.folder), exist_ok=True)
    found = base.lstat()  # not where a link leads, which somebody else may have made
    is_ours = sys.platform == "win32" or (found.st_uid == os.getuid() and not stat.S_IMODE(found.st_mode) & 0o077)
    if not stat.S_ISDIR(found.st_mode) or not is_ours:
        raise PermissionError(errno.EPERM, f"'{base.name}' in it is not a folder that only this user can read")
    return base


def _temporary_folder() -> str:
    """Return the folder for temporary files, the same for all ranks.

    `tempfile.gettempdir` passes over a folder without room for a file, which one rank may find full and another not;
    and where all are full it takes the current folder, which is the user's.
    """
    named = [os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP")]
    usual = [name for name in _USUAL_FOLDERS if os.access(name, os.W_OK | os.X_OK)]
    found = next((name for name in [*named, *usual] if name and Path(name).is_dir()), None)
    try:
        return str(Path(found).absolute()) if found is not None else tempfile.gettempdir()
    except OSError:
        return "/tmp"  # noqa: S108  # its name is said


def _encoded(record: Record) -> bytes:
    """Encode a record, also with names that are not Unicode."""
    try:
        return msgspec.json.encode(record)
    except UnicodeEncodeError:
        escaped = {
            name: escape_control(text) if isinstance(text, str) else text for name, text in asdict(record).items()
        }
        return msgspec.json.encode(escaped)


def started_at(pid: int) -> str:
    """Return when a process began, as the system counts; "" if it has ended, or the system does not say."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[19]


def is_running(pid: int, started: str) -> bool:
    """Return whether a process of this host is still there, and not a later one with its pid."""
    if sys.platform == "win32":  # where signal 0 would end it
        return True
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return started_at(pid) == started


def _write(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{_thread.get_ident()}")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        if not path.exists():
            raise
        path.write_bytes(content)  # a full disk may still have room in a file that is there; a part of it is not read


def _remove_ended_runs(base: Path) -> None:
    """Remove the folders of runs whose ranks were all on this host and have ended, as after a kill."""
    for folder in base.iterdir():
        with suppress(OSError, msgspec.DecodeError):
            states = [msgspec.json.decode(path.read_bytes(), type=State) for path in folder.glob("state.*")]
            has_ended = all(one.host == HOST and not is_running(one.pid, one.started) for one in states)
            if states and has_ended:
                shutil.rmtree(folder, ignore_errors=True)
