"""Run something in a forked process, which cannot disturb this one and report what it sends.

A copy is also made, and ends, in the middle of a program, which may have replaced functions of `os`: they are imported
by name. NOTE [Our own calls] in `torch_api.patching.originals`.
"""

import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from gc import freeze
from importlib import import_module
from os import _exit, close, dup2, kill, pipe, read, waitpid, waitstatus_to_exitcode, write
from os import open as open_file
from pathlib import Path
from select import select
from time import monotonic
from types import SimpleNamespace
from typing import Any
from weakref import finalize

from gradinspect.errors import GradInspectError
from gradinspect.kept_files import run as kept_files
from gradinspect.runner.ending import end_process

Send = Callable[[bytes], None]
fork: Any = getattr(os, "fork", None)  # Windows has none
_here = SimpleNamespace(is_hidden=False)


def load_for_children() -> None:
    """Import what every child would, which takes seconds: dispatch modes need it. A failure shows in the program."""
    with suppress(Exception):
        import_module("torch._dynamo")
    freeze()  # else each collection in a child looks at all of this, and so copies its memory


def _leave_to_parent() -> None:
    """Let a child finalize only what it makes: temporary folders are not its own, and torch's operators take long."""
    for finalizer in list(finalize._registry):  # type: ignore[attr-defined]  # it has no other list
        finalizer.atexit = False


def device_is_lost() -> bool:
    """Return whether this child cannot use the accelerator, because the process that was copied had used it."""
    # ruff: noqa: PLC0415  # the parent imports torch when it knows what the program would import
    from gradinspect.torch_api.devices.accelerators import is_lost_in_fork

    return is_lost_in_fork()


def run_forked(run: Callable[[Send], None], *, is_silent: bool) -> tuple[bytes, int]:
    """Run a function in a child of this process; the child ends with it.

    Args:
        run: Is given a function that sends bytes to this process.
        is_silent: Whether to drop what the child writes to its stdout and stderr.

    Returns:
        What was sent, and how the child ended: 0, or minus the number of the signal that killed it.

    Raises:
        GradInspectError: This platform has no fork.
    """
    if fork is None:
        raise GradInspectError(
            "Running a program several times needs copies of this process, which this platform cannot make."
        )
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()  # or the child would write it again
    source, target = pipe()
    pid = fork()
    if not pid:
        close(source)
        be_child(run, target, is_silent=is_silent)
    close(target)
    try:
        sent = read_all(source)
    except BaseException:
        kill(pid, signal.SIGTERM)
        waitpid(pid, 0)
        raise
    close(source)
    status = waitstatus_to_exitcode(waitpid(pid, 0)[1])
    kept_files.put_back()
    return sent, status


def run_in_copy(work: Callable[[], bytes], *, seconds: float | None = None) -> bytes:
    """Return what a function makes in a copy of this process, which ends without its exit handlers; empty if it fails.

    Args:
        work: What is done; nothing that it writes to stdout and stderr is seen.
        seconds: How long it may take.

    Raises:
        OSError: The system has no room for another process.
    """
    source, target = pipe()
    try:
        pid = fork()
    except OSError:
        close(source)
        close(target)
        raise
    if not pid:
        try:
            hide_output()
            write_all(target, work())
        finally:
            _exit(0)  # nothing of the program is to be ended
    close(target)
    parts = list[bytes]()
    ends = None if seconds is None else monotonic() + seconds
    while select([source], [], [], None if ends is None else max(0.0, ends - monotonic()))[0]:
        part = read(source, 2**20)
        parts.append(part)
        if not part:
            break
    else:
        kill(pid, signal.SIGKILL)
        parts.clear()
    close(source)
    waitpid(pid, 0)
    return b"".join(parts)


def be_child(run: Callable[[Send], None], target: int, *, is_silent: bool) -> None:
    """Run, then end this process as Python ends, without going back to the code that has forked it."""
    status = 1
    try:
        _leave_to_parent()
        if is_silent:
            hide_output()
        run(lambda data: write_all(target, data))
        status = 0
    except BaseException:
        traceback.print_exc()  # an error of ours: those of the program are sent
    finally:
        end_process(status)


def hide_output() -> None:
    """Drop what this process writes to its stdout and stderr from now on."""
    null = open_file(Path(os.devnull), os.O_WRONLY)
    dup2(null, 1)
    dup2(null, 2)
    close(null)
    _here.is_hidden = True


def is_output_hidden() -> bool:
    """Return whether this process is a copy whose output is dropped, and whose errors nobody reads."""
    return bool(_here.is_hidden)


def write_all(target: int, data: bytes) -> None:
    """Write to a pipe."""
    while data:
        data = data[write(target, data) :]


def read_all(source: int, size: int = sys.maxsize) -> bytes:
    """Read from a pipe until its end, or as many bytes."""
    parts = list[bytes]()
    while size and (part := read(source, min(size, 2**20))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
