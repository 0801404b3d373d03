"""Run a child process that ends when we do, however we end.

NOTE [However we end]
After SIGKILL we can no longer kill the child, so a guard must: a shell that holds the other end of one of our pipes.
When we are gone, it reads the end of that pipe and kills the process group that it shares with the child. Linux can
signal the child directly (PR_SET_PDEATHSIG), but only when set between fork and exec, where Python must not run with
threads, and it misses the child's own children: `dot` may be a shell script around the real one. Without a shell, and
on Windows, the child ends with us only when we can still kill it.
"""

import os
import signal
import subprocess
from contextlib import suppress
from shutil import which
from typing import NamedTuple

_GUARD = "read -r _ && exit; kill -9 0"  # a line: the child is done; end of file: we are gone, so kill the group


class Finished(NamedTuple):
    """How a program ended."""

    returncode: int
    output: bytes
    errors: bytes


def run_child(command: list[str], text: bytes, time_limit_s: float) -> Finished:
    """Run a program to its end.

    Raises:
        subprocess.TimeoutExpired: It took too long, and was killed with its children.
    """
    guard = _start_guard()
    process = None
    try:
        process = _start(command, guard)
        output, errors = process.communicate(text, timeout=max(time_limit_s, 0.01))
        return Finished(process.returncode, output, errors)
    finally:
        if process is not None and process.poll() is None:
            _kill(process, guard)
        if guard is not None:
            with suppress(OSError):
                guard.communicate(b"\n")


def _start(command: list[str], guard: "subprocess.Popen[bytes] | None") -> "subprocess.Popen[bytes]":
    """Start a program in the process group of its guard, or in its own."""
    pipe = subprocess.PIPE
    group = None if guard is None else guard.pid
    if group is None and hasattr(os, "killpg"):
        group = 0
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, process_group=group)  # noqa: S603  # no argument comes from outside


def _start_guard() -> "subprocess.Popen[bytes] | None":
    """Start the shell that waits for our end. NOTE [However we end]."""
    shell = which("sh", path=os.defpath)
    if shell is None or not hasattr(os, "killpg"):
        return None
    nowhere = subprocess.DEVNULL
    try:
        return subprocess.Popen(  # noqa: S603  # the shell was found above
            [shell, "-c", _GUARD], stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere, process_group=0
        )
    except OSError:
        return None


def _kill(process: "subprocess.Popen[bytes]", guard: "subprocess.Popen[bytes] | None") -> None:
    """Kill a program and its children, also on Ctrl-C."""
    if hasattr(os, "killpg"):
        os.killpg(process.pid if guard is None else guard.pid, signal.SIGKILL)
    else:
        process.kill()
    process.communicate()
