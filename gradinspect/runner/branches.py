"""Let a run wait at a place of its program, and go on from there in copies of its process, one for each request.

NOTE [What copies of a process share]
A copy begins with the same memory, but files, pipes, children and threads are not copied: what one copy reads from an
open file, or from the workers of a data loader, the next one misses. So a run waits only where the program has none.
Python's `random` draws a new seed in each copy, so its state is put back; kernels run on one thread there, because the
threads of torch's pool stay behind.
"""

import os
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from gc import freeze
from os import close, fstat, pipe, waitpid, waitstatus_to_exitcode
from pathlib import Path
from random import getstate, setstate
from struct import Struct
from threading import active_count
from typing import Any

from gradinspect.kept_files import run as kept_files
from gradinspect.runner.forked import Send, be_child, fork, hide_output, read_all, write_all

_waitid: Any = getattr(os, "waitid", None)
_HEAD = Struct("!qq?")  # bytes, how the process ended, whether it was a copy


class Branches:
    """The side that runs the program."""

    def __init__(self, asked: int, answers: int) -> None:
        """Set up, with two ends of pipes, before the program runs: its own modules may have the names of ours."""
        # ruff: noqa: PLC0415  # the parent imports torch when it knows what the program would import
        from torch import set_num_threads

        from gradinspect.torch_api.devices import accelerators

        self._accelerators, self._set_num_threads = accelerators, set_num_threads
        self._asked = asked
        self._answers = answers
        self._copy: int | None = None  # where a copy of the run sends its result
        self._open = _open_files()

    def send(self, data: bytes) -> None:
        """Send the result of a copy, or of a run that has not waited."""
        if self._copy is not None:
            write_all(self._copy, data)
        else:
            write_all(self._answers, _HEAD.pack(len(data), 0, False) + data)

    def can_wait(self, *, engine_has_run: bool) -> bool:
        """Return whether copies can do no harm. NOTE [What copies of a process share].

        Args:
            engine_has_run: Whether the autograd engine has run, and so has the threads that it needs.
        """
        devices = self._accelerators  # before it has run, a copy could not start the threads for them
        has_threads = devices.has_engine_threads() if engine_has_run else devices.is_there()
        return active_count() == 1 and not has_threads and not _has_children() and _open_files() <= self._open

    def wait(self) -> bytes | None:
        """Wait for requests: each returns in a copy of this process; None in this one, when none will come."""
        state = getstate()
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                stream.flush()  # or each copy would write it again
        freeze()  # else each collection in a copy looks at all of this, and so copies its memory
        while request := self._next():
            is_silent, rest = request[0], request[1:]
            source, target = pipe()
            pid = fork()
            if not pid:
                close(source)
                self._copy = target
                setstate(state)
                self._set_num_threads(1)
                if is_silent:
                    hide_output()
                return rest
            close(target)
            sent = read_all(source)
            close(source)
            status = waitstatus_to_exitcode(waitpid(pid, 0)[1])
            write_all(self._answers, _HEAD.pack(len(sent), status, True) + sent)
        hide_output()
        return None

    def _next(self) -> bytes:
        """Read a request, after whether to hide what is printed; nothing if none will come."""
        head = read_all(self._asked, _HEAD.size)
        return read_all(self._asked, _HEAD.unpack(head)[0]) if head else b""


class WaitingRun:
    """The side that sends requests."""

    def __init__(self, run: Callable[[Send, Branches], None], *, is_silent: bool) -> None:
        """Start a run."""
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                stream.flush()
        asked, self._asks = pipe()
        self._answers, answers = pipe()
        self._pid = fork()
        if not self._pid:
            close(self._asks)
            close(self._answers)
            branches = Branches(asked, answers)
            be_child(lambda _send: run(branches.send, branches), answers, is_silent=is_silent)
        close(asked)
        close(answers)
        self.is_waiting = True

    def ask(self, request: bytes, *, is_silent: bool) -> tuple[bytes, int]:
        """Have a copy go on, and return what it sends, and how it ended; or the run itself, if it did not wait."""
        with suppress(BrokenPipeError):
            write_all(self._asks, _HEAD.pack(1 + len(request), 0, False) + bytes([is_silent]) + request)
        head = read_all(self._answers, _HEAD.size)
        if not head:
            return b"", self.close()
        size, status, is_copy = _HEAD.unpack(head)
        sent = read_all(self._answers, size)
        if not is_copy:
            self.close()
        kept_files.put_back()
        return sent, status

    def close(self) -> int:
        """Let the run end, and return how it ended."""
        if not self.is_waiting:
            return 0
        self.is_waiting = False
        with suppress(BrokenPipeError):
            write_all(self._asks, _HEAD.pack(0, 0, False))  # a run that was begun later holds this pipe too
        close(self._asks)
        read_all(self._answers)
        close(self._answers)
        status = waitstatus_to_exitcode(waitpid(self._pid, 0)[1])
        kept_files.put_back()
        return status


def _open_files() -> set[tuple[int, int]]:
    """Identify what is open, without devices such as /dev/null; a duplicate is the same file."""
    folder = Path("/dev/fd")
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return {found for name in names if (found := _file_of(int(name))) is not None}


def _file_of(number: int) -> tuple[int, int] | None:
    try:
        status = fstat(number)
    except OSError:
        return None  # that of the list itself, which is closed by now
    return None if stat.S_ISCHR(status.st_mode) else (status.st_dev, status.st_ino)


def _has_children() -> bool:
    try:
        _waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    except (AttributeError, TypeError, OSError):
        return True  # this platform does not say
    return True
