"""Run a program that ends when we do, whatever ends us.

NOTE [Whatever ends us]
Killed by SIGKILL we can end nobody, so somebody else must: a shell that holds the other end of a pipe of ours. When we
are gone, it comes to the end of that pipe, and kills the group of processes that it shares with the program. Linux
could tell the program alone (PR_SET_PDEATHSIG), but only from between fork and exec, where Python must not run beside
threads, and not those that the program starts: `dot` may be a shell script around the real one. Where there is no
shell, and on Windows, the program is ended with us only as far as we still can.
"""

import os
import signal
import subprocess
from contextlib import suppress
from shutil import which
from typing import NamedTuple

_GUARD = "read -r _ && exit; kill -9 0"  # a line: all is well; none: we are gone, and so shall the group be


class Finished(NamedTuple):
    """How a program ended."""

    returncode: int
    output: bytes
    errors: bytes


def run_child(command: list[str], text: bytes, time_limit_s: float) -> Finished:
    """Run a program to its end.

    Raises:
        subprocess.TimeoutExpired: It took too long, and was ended with whatever it had started.
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
    """Start a program in the group of its guard, or in one of its own."""
    pipe = subprocess.PIPE
    group = None if guard is None else guard.pid
    if group is None and hasattr(os, "killpg"):
        group = 0
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, process_group=group)  # noqa: S603  # no text of others is an argument


def _start_guard() -> "subprocess.Popen[bytes] | None":
    """Start the shell that waits for our end. NOTE [Whatever ends us]."""
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
    """End a program and whatever it started, also on Ctrl-C."""
    if hasattr(os, "killpg"):
        os.killpg(process.pid if guard is None else guard.pid, signal.SIGKILL)
    else:
        process.kill()
    process.communicate()
