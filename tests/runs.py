"""Running the command line as a user does.

NOTE [A process of its own]
Each run is a process of its own, but nearly all of what a process costs here is importing torch. So the first run
starts one that has imported it, a fork of which imports our package, and each run is a fork of one of the two, with its
own arguments, folder, environment and streams. What Python reads only as it starts (PYTHONIOENCODING, the hash seed),
and what depends on when our modules are imported, needs `is_new`.

NOTE [Runs that see coverage]
Where coverage is measured, it is in each process: its modules are loaded before those of the program, and it calls what
the program may have replaced; and it takes time. Tests about modules, builtins or limits of time run without it.
"""

import atexit
import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

SERVER = Path(__file__).parent / "fork_server.py"
PATIENCE_S = 300.0
SKIPS_CODE_OF_TORCH = tuple(map(int, version("torch").split(".")[:2])) < (2, 14)  # `module.compile()` does
MEASURING = ("COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG")


class _Request(NamedTuple):
    """What a fork shall do."""

    words: list[str]
    folder: str
    environment: dict[str, str]
    is_script: bool = False
    absent: Sequence[str] = ()


def gradinspect(
    *arguments: str | Path,
    cwd: Path | None = None,
    typed: str = "",
    is_new: bool = False,
    absent: Sequence[str] = (),
    is_measured: bool = True,
    **variables: str,
) -> "subprocess.CompletedProcess[str]":
    """Run the command in a process of its own, at 80 columns, in a pipe.

    Args:
        arguments: The words of the command line after `gradinspect`.
        cwd: The folder to run in.
        typed: What comes through stdin.
        is_new: Start Python for it. NOTE [A process of its own].
        absent: Private names of torch that are taken away: NOTE [Private names] in `torch_api.probes`.
        is_measured: Whether coverage may be there, if it is measured at all: NOTE [Runs that see coverage].
        variables: Of the environment.
    """
    environment = {**(os.environ if is_measured else unmeasured()), "COLUMNS": "80", **variables}
    words = list(map(str, arguments))
    if not is_new and not any(name.startswith("PYTHON") for name in variables):
        request = _Request(["gradinspect", *words], str(cwd or Path.cwd()), environment, absent=absent)
        return _fork(_server() if absent else _server_with_ours(), request, typed)
    return subprocess.run(
        [sys.executable, "-m", "gradinspect", *words], input=typed, capture_output=True, text=True, timeout=PATIENCE_S,
        check=False, cwd=cwd, env=environment,
    )  # fmt: skip


def python(
    script: Path, *words: str, cwd: Path | None = None, is_measured: bool = True, has_ours: bool = False
) -> "subprocess.CompletedProcess[str]":
    """Run a script as its author does; `has_ours` where it may find our package imported, as it needs that anyway."""
    environment = dict(os.environ) if is_measured else unmeasured()
    request = _Request([str(script), *words], str(cwd or Path.cwd()), environment, is_script=True)
    return _fork(_server_with_ours() if has_ours else _server(), request)


def unmeasured() -> dict[str, str]:
    """Return the environment of a process without coverage: NOTE [Runs that see coverage]."""
    return {name: value for name, value in os.environ.items() if name not in MEASURING}


@cache
def _server() -> socket.socket:
    """Start the process that forks; it ends when the tests do."""
    ours, theirs = socket.socketpair()
    fixed = {**os.environ, "PYTHONHASHSEED": "0"}  # runs are compared
    process = subprocess.Popen(
        [sys.executable, str(SERVER), str(theirs.fileno())], pass_fds=[theirs.fileno()], env=fixed
    )
    theirs.close()
    atexit.register(_end, ours, process)
    return ours


@cache
def _server_with_ours() -> socket.socket:
    """Start a fork of it that imports our package; it ends when the tests do."""
    ours, theirs = socket.socketpair()
    socket.send_fds(_server(), [json.dumps({"serves": True}).encode()], [theirs.fileno()])
    theirs.close()
    return ours


def _end(ours: socket.socket, process: "subprocess.Popen[bytes]") -> None:
    ours.close()
    process.wait()


def _fork(server: socket.socket, request: "_Request", typed: str = "") -> "subprocess.CompletedProcess[str]":
    pipes = [os.pipe() for _ in range(3)]
    (stdin, feed), (output, stdout), (errors, stderr) = pipes
    socket.send_fds(server, [json.dumps(request._asdict()).encode()], [stdin, stdout, stderr])
    for theirs in (stdin, stdout, stderr):
        os.close(theirs)
    pid = int(_line(server))
    timer = threading.Timer(PATIENCE_S, os.kill, (pid, 9))
    timer.start()
    threading.Thread(target=_feed, args=(feed, typed), daemon=True).start()
    read: dict[int, str] = {}
    readers = [threading.Thread(target=_read, args=(stream, read)) for stream in (output, errors)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    code = int(_line(server))
    timer.cancel()
    return subprocess.CompletedProcess(request.words, code, read[output], read[errors])


def _line(server: socket.socket) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        part = server.recv(1)
        if not part:
            raise RuntimeError("The process that forks has ended.")
        line += part
    return line


def _feed(stream: int, text: str) -> None:
    with open(stream, "w") as feed, contextlib.suppress(BrokenPipeError):  # a number
        feed.write(text)


def _read(stream: int, read: dict[int, str]) -> None:
    with open(stream) as opened:  # a number
        read[stream] = opened.read()
