"""A process that has imported torch, and forks itself for every command that it is sent. See runs.py.

Asked to, it forks another such process, which has imported our package, too: torch is imported once for both.
"""

import atexit
import contextlib
import gc
import importlib.util
import json
import os
import pkgutil
import runpy
import socket
import sys
import threading
import weakref
from typing import Any

HAS_TRITON = importlib.util.find_spec("triton") is not None


def serve(connection: socket.socket) -> dict[str, Any]:
    """Fork for each request, one after the other. Only the child returns, with what it shall do."""
    while True:
        message, streams, _, _ = socket.recv_fds(connection, 1 << 20, 3)
        if not message:
            os._exit(0)
        request: dict[str, Any] = json.loads(message)
        pid = os.fork()
        if pid == 0:
            connection.close()
            if request.get("serves"):
                connection = with_ours(streams[0])
                continue
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
                os.close(stream)
            return request
        for stream in streams:
            os.close(stream)
        if request.get("serves"):
            continue
        connection.send(f"{pid}\n".encode())
        connection.send(f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n".encode())


def become(request: dict[str, Any]) -> None:
    """Be as new: what Python sets up from the outside is set up again."""
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.argv = request["words"]
    sys.stdin = sys.__stdin__ = open(0, closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # type: ignore[misc]  # noqa: SIM115


def measure_nothing() -> None:
    """Stop coverage, where it is measured: NOTE [Runs that see coverage] in runs.py."""
    measured = measuring()
    if measured is not None:
        measured.stop()


def measuring() -> Any:
    """Return what measures coverage in this process."""
    coverage = sys.modules.get("coverage")
    return coverage.Coverage.current() if coverage else None


def import_ours() -> None:
    """Import all of our package that some command may need, so that no fork has to."""
    ours: Any = importlib.import_module("gradinspect")
    own_imports: Any = importlib.import_module("gradinspect.cli.running.own_imports")
    packages = [found.name for found in pkgutil.iter_modules(ours.__path__) if found.ispkg]
    own_imports.import_packages([name for name in packages if name not in ("explorer", "trainers")])
    if not HAS_TRITON:  # torch._dynamo is there
        dynamo: Any = importlib.import_module("gradinspect.torch_api.dynamo")
        dynamo.never_compiled(ours)  # for all forks: it is most of what a short run takes


def with_ours(stream: int) -> socket.socket:
    """Become a process that has imported our package, and answers on another connection."""
    import_ours()
    prepare_forks()
    return socket.socket(fileno=stream)


def prepare_forks() -> None:
    """Do once what each fork would do: look through all objects, and write what importing ran."""
    if not HAS_TRITON:  # its objects must not outlive a fork
        gc.collect()
        gc.freeze()  # else each collection in a fork looks at all of torch's objects, and so copies their memory
    measure_each_fork_alone()
    keep_libraries_of_torch()


def measure_each_fork_alone() -> None:
    """Where coverage is measured, write what importing ran: else every fork writes it again as it ends.

    Nor need each of them look for the files of which it runs nothing. Both take longer than most runs.
    """
    measured = measuring()
    if measured is not None:
        measured.save()
        folders = [os.path.abspath(folder) for folder in measured.get_option("run:source_dirs")]  # noqa: PTH100
        if folders:  # else it was done in the process that this one is a fork of
            measured.set_option("run:source_dirs", [])
            measured.set_option("run:include", [f"{folder}/*" for folder in folders])


def keep_libraries_of_torch() -> None:
    """Let no fork take torch's own operators apart as it ends, which takes longer than most runs."""
    for finalizer in list(weakref.finalize._registry):  # type: ignore[attr-defined]  # it has no other list
        finalizer.atexit = False


def take_away(absent: frozenset[str]) -> None:
    """Be a torch that lacks some private names, as far as our package can see."""
    probes: Any = importlib.import_module("gradinspect.torch_api.probes")
    look_up = probes.look_up
    probes.look_up = lambda path: probes.MISSING if path in absent else look_up(path)


def end(status: int) -> None:
    """End with a status, but without taking apart all modules, which takes longer than most runs."""
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status & 0xFF)


def run(request: dict[str, Any]) -> None:
    """Run the program, or our command."""
    if request["is_script"]:
        sys.path[0] = os.path.dirname(sys.argv[0])  # noqa: PTH120  # as Python has it
        runpy.run_path(sys.argv[0], run_name="__main__")
    else:
        sys.path[0] = request["folder"]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


def answer(connection: socket.socket) -> None:
    """Fork for each request; a fork runs what it is asked for, and ends as Python does."""
    asked = serve(connection)
    become(asked)
    if "COVERAGE_PROCESS_START" not in asked["environment"]:
        measure_nothing()
    if asked["absent"]:
        take_away(frozenset(asked["absent"]))
    status = 0
    try:
        run(asked)
    except SystemExit as error:  # whatever else ends the program is Python's to tell
        if not isinstance(error.code, int | None):
            raise
        status = error.code or 0
    with contextlib.suppress(Exception):  # a stream that is closed, full or gone is Python's to tell, too
        end(status)
    sys.exit(status)


if __name__ == "__main__":
    for name in ("typer.main", "typer._adapters", "rich.console"):
        importlib.import_module(name)
    if not HAS_TRITON:  # torch._dynamo loads it, and its objects must not outlive a fork
        for name in ("torch._dynamo", "torch._functorch.aot_autograd", "torch._inductor.pattern_matcher"):
            importlib.import_module(name)  # else each fork that compiles does, which is most of what it takes
    importlib.import_module("torch").manual_seed(0)  # chance seeds it: the forks of two such processes are compared
    prepare_forks()
    answer(socket.socket(fileno=int(sys.argv[1])))
