"""Tests in forks of this process: which lines each of them reaches, and what they say of a changed module.

Commands that tests run through `runs.gradinspect` are forks of such a fork, so they see the change, and are measured.
"""

import ast
import importlib
import importlib.machinery
import os
import select
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

import coverage
import pytest

TESTS_S = 20.0  # of all tests of one change, as long as they took without it
# Without the last of them pytest, whose plugin we are, reads our modules.
OPTIONS = ["-p", "no:cacheprovider", "--tb=no", "--assert=plain"]


class Reach(NamedTuple):
    """Which tests reach which lines."""

    of_line: dict[Path, dict[int, set[str]]]
    seconds: dict[str, float]  # of each test that passes
    failed: list[str]  # these do not count

    def tests_of(self, path: Path, line: int) -> list[str]:
        """List the tests that reach a line; if it runs only on import, its file, or else all; the fastest first."""
        lines = self.of_line.get(path, {})
        tests = lines.get(line, set()) & self.seconds.keys()
        tests = tests or set().union(*lines.values()) & self.seconds.keys() or set(self.seconds)
        chosen, total = [], 0.0
        for test in sorted(tests, key=lambda test: (self.seconds.get(test, 0.0), test)):
            total += self.seconds.get(test, 0.0)
            if total > TESTS_S:
                break
            chosen.append(test)
        return chosen


class _Contexts:
    """Tells coverage which test runs, and notes how long each takes that passes."""

    def __init__(self, measured: coverage.Coverage) -> None:
        self.measured = measured
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Run one test, with its fixtures."""
        begun = time.perf_counter()
        self.measured.switch_context(item.nodeid)
        found = yield
        self.measured.switch_context("")
        self.seconds[item.nodeid] = time.perf_counter() - begun
        return found

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what fails."""
        if report.failed:
            self.failed.add(report.nodeid)


def reach_of(tested: list[str], package: Path, folder: Path) -> Reach:
    """Run all tests of some folders once, in a fork."""
    data, times = folder / "reach", folder / "times"
    if not times.exists():
        ended, open_until_then = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.environ["COVERAGE_PROCESS_START"] = ""  # else the forks of `fork_server` measure nothing
            measured = coverage.Coverage(
                data_file=str(data), data_suffix=True, config_file=False, source=[str(package)]
            )
            contexts = _Contexts(measured)
            measured.start()
            _save_where_processes_end(measured)
            commands_in_forks(lambda: _name_test(measured))
            run_tests(tested, contexts)
            passed = {test: seconds for test, seconds in contexts.seconds.items() if test not in contexts.failed}
            times.write_text(repr((passed, sorted(contexts.failed))))
            os._exit(0)
        os.close(open_until_then)
        os.read(ended, 1)  # when the last fork has ended, which may still have been saving what it has measured
        os.waitpid(pid, 0)
    read = coverage.CoverageData(str(data))
    read.read()  # else the first update erases what is there
    for part in folder.glob("reach.*"):
        one = coverage.CoverageData(str(part))
        one.read()
        read.update(one)
        part.unlink()
    of_line = {
        Path(file): {line: set(tests) for line, tests in read.contexts_by_lineno(file).items()}
        for file in read.measured_files()
    }
    return Reach(of_line, *ast.literal_eval(times.read_text()))


def _save_where_processes_end(measured: coverage.Coverage) -> None:
    """Save what ran in each process that ends itself, as the forks that run commands do."""
    leave = os._exit

    def save_and_leave(status: int) -> None:
        with suppress(Exception):  # where nothing has run, its file is not there
            measured.stop()
            measured.save()
        leave(status)

    os._exit = save_and_leave  # type: ignore[assignment]


def _name_test(measured: coverage.Coverage) -> None:
    measured.switch_context(os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0])


def commands_in_forks(begin: Callable[[], object] = lambda: None) -> None:
    """Let tests fork the commands that they run from this process, rather than from one that they start.

    Args:
        begin: Is called in the process of each command.
    """
    runs: Any = importlib.import_module("runs")
    fork_server: Any = importlib.import_module("fork_server")
    become = fork_server.become

    def become_and_begin(asked: dict[str, Any]) -> None:
        become(asked)
        begin()

    fork_server.become = become_and_begin
    for name, has_ours in {"_server": False, "_server_with_ours": True}.items():
        assert callable(getattr(runs, name))  # else tests would run commands in processes without the change
        setattr(runs, name, partial(_itself, _start_server(fork_server, has_ours=has_ours)))


def _itself(server: socket.socket) -> socket.socket:
    return server


def _start_server(fork_server: Any, *, has_ours: bool) -> socket.socket:  # noqa: ANN401  # a module of tests
    """Fork a process that forks for each request, before any test has started threads."""
    ours, theirs = socket.socketpair()
    if os.fork():
        theirs.close()
        return ours
    ours.close()
    _be_silent()
    status = 1
    try:
        select.select([theirs], [], [])
        if has_ours:
            fork_server.import_ours()
        fork_server.answer(theirs)
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    except BaseException:  # as Python does
        traceback.print_exc()
    sys.stdout.flush()
    os._exit(status)


def replace_source(path: str, source: str) -> None:
    """Compile other source in place of a file's."""
    get_code = importlib.machinery.SourceFileLoader.get_code

    def changed(loader: importlib.machinery.SourceFileLoader, name: str) -> CodeType | None:
        return compile(source, path, "exec", dont_inherit=True) if loader.path == path else get_code(loader, name)

    importlib.machinery.SourceFileLoader.get_code = changed  # type: ignore[method-assign]


def run_tests(tests: list[str], *more: object) -> int:
    """Run tests, up to the first that fails unless there is more to note."""
    _be_silent()
    return int(pytest.main([*tests, *OPTIONS, *([] if more else ["-x"])], plugins=more))


def _be_silent() -> None:
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
