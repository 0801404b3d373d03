"""Run something in a forked process, which cannot disturb this one and report what it sends."""

import atexit
import gc
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from weakref import finalize

from gradinspect.errors import GradInspectError

Send = Callable[[bytes], None]


def load_for_children() -> None:
    """Import what every child would, which takes seconds: dispatch modes need it. If it fails, the program tells."""
    with suppress(Exception):
        import_module("torch._dynamo")
    gc.freeze()  # else each collection in a child looks at all of this, and so copies its memory


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
    if not hasattr(os, "fork"):
        raise GradInspectError(
            "Running a program several times needs copies of this process, which this platform cannot make."
        )
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()  # or the child would write it again
    source, target = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(source)
        be_child(run, target, is_silent=is_silent)
    os.close(target)
    try:
        sent = read_all(source)
    except BaseException:
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)
        raise
    os.close(source)
    return sent, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def run_in_copy(work: Callable[[], bytes], *, seconds: float | None = None) -> bytes:
    """Return what a function makes in a copy of this process, which ends without its exit handlers; empty if it fails.

    Args:
        work: What is done; nothing that it writes to stdout and stderr is seen.
        seconds: How long it may take.

    Raises:
        OSError: The system has no room for another process.
    """
    source, target = os.pipe()
    try:
        pid = os.fork()
    except OSError:
        os.close(source)
        os.close(target)
        raise
    if not pid:
        try:
            hide_output()
            write_all(target, work())
        finally:
            os._exit(0)  # nothing of the program is to be ended
    os.close(target)
    parts = list[bytes]()
    ends = None if seconds is None else time.monotonic() + seconds
    while select.select([source], [], [], None if ends is None else max(0.0, ends - time.monotonic()))[0]:
        part = os.read(source, 2**20)
        parts.append(part)
        if not part:
            break
    else:
        os.kill(pid, signal.SIGKILL)
        parts.clear()
    os.close(source)
    os.waitpid(pid, 0)
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
        with suppress(BaseException):
            atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                stream.flush()
        os._exit(status)


def hide_output() -> None:
    """Drop what this process writes to its stdout and stderr from now on."""
    null = os.open(Path(os.devnull), os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.close(null)


def write_all(target: int, data: bytes) -> None:
    """Write to a pipe."""
    while data:
        data = data[os.write(target, data) :]


def read_all(source: int, size: int = sys.maxsize) -> bytes:
    """Read from a pipe until its end, or as many bytes."""
    parts = list[bytes]()
    while size and (part := os.read(source, min(size, 2**20))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
