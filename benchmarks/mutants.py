"""Change one thing in a module, and see whether a fast test notices: `python benchmarks/mutants.py recording storage`.

The changes are those of cosmic-ray, without what cannot fail a test: annotations, and the arguments of class
statements. They are drawn at random from all modules of a package, with a seed. torch and the test tools are imported
once; each change is tried in a fork of that process, which compiles the changed source in place of the file and runs
the tests that reach its line, the fastest first. Commands that tests run through `runs.gradinspect` are forks of that
fork. Tests that start other processes do not see the change, and those that fail in such forks do not count.
"""

import argparse
import ast
import gc
import importlib
import importlib.machinery
import math
import os
import random
import select
import signal
import socket
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

import coverage
import pytest
from cosmic_ray import plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "gradinspect"
PRELOADED = ("torch", "torch._dynamo", "hypothesis", "inline_snapshot", "numpy", "rich.console", "typer.main", "yaml")
SAME_THING = {"Eq_Is", "NotEq_IsNot", "Is_Eq", "IsNot_NotEq"}  # replacements that differ for few values
WIDTH = 120  # of a line
TESTS_S = 20.0  # of all tests of one change, as long as they took without it
PATIENCE = 4.0  # times that
# Without the last of them pytest, whose plugin we are, reads our modules.
_OPTIONS = ["-p", "no:cacheprovider", "--tb=no", "--assert=plain"]


class Mutant(NamedTuple):
    """A changed module."""

    path: Path
    line: int
    column: int
    operator: str
    occurrence: int

    @property
    def place(self) -> str:
        """File and line, as an editor takes them."""
        return f"{self.path.relative_to(ROOT)}:{self.line}"


class Reach(NamedTuple):
    """Which tests reach which lines."""

    of_line: dict[Path, dict[int, set[str]]]
    seconds: dict[str, float]  # of each test that passes

    def tests_of(self, mutant: Mutant) -> list[str]:
        """List the tests that reach a line, or its file if the line runs only on import; the fastest first."""
        lines = self.of_line.get(mutant.path, {})
        tests = lines.get(mutant.line, set()) & self.seconds.keys()
        tests = tests or set().union(*lines.values()) & self.seconds.keys()
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


def tests_of(package: str) -> str:
    """Name the folder of tests that mirrors a package, or the package that a module is in; or certain tests."""
    folder = ROOT / "tests" / package
    return str(folder if "::" in package or folder.exists() else folder.parent)


def reach_of(tested: list[str], folder: Path) -> Reach:
    """Run all tests of some folders once, in a fork."""
    data, times = folder / "reach", folder / "times"
    if not times.exists():
        pid = os.fork()
        if pid == 0:
            measured = coverage.Coverage(
                data_file=str(data), data_suffix=True, config_file=False, source=[str(PACKAGE)]
            )
            contexts = _Contexts(measured)
            measured.start()
            _save_where_processes_end(measured)
            commands_in_forks(lambda: _name_test(measured))
            _run_tests(tested, contexts)
            passed = {test: seconds for test, seconds in contexts.seconds.items() if test not in contexts.failed}
            times.write_text(repr(passed))
            os._exit(0)
        os.waitpid(pid, 0)
    read = coverage.CoverageData(str(data))
    for part in folder.glob("reach.*"):
        one = coverage.CoverageData(str(part))
        one.read()
        read.update(one)
        part.unlink()
    read.read()
    of_line = {
        Path(file): {line: set(tests) for line, tests in read.contexts_by_lineno(file).items()}
        for file in read.measured_files()
    }
    return Reach(of_line, ast.literal_eval(times.read_text()))


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
    servers = {has_ours: _start_server(fork_server, has_ours=has_ours) for has_ours in (True, False)}
    runs._server = lambda *, has_ours: (servers[has_ours], None)


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


def mutants_of(path: Path) -> Iterator[Mutant]:
    """List all changes to a module that a test could notice."""
    source = path.read_text(encoding="utf-8")
    ignored = set(_declarations(ast.parse(source)))
    nodes = list(ast_nodes(get_ast(source)))
    for name in plugins.operator_names():
        operator = plugins.get_operator(name)
        if operator.arguments() or any(name.endswith(same) for same in SAME_THING):
            continue
        positions = [start for node in nodes for start, _ in operator().mutation_positions(node)]
        for occurrence, (line, column) in enumerate(positions):
            if (line, column) not in ignored:
                yield Mutant(path, line, column, name, occurrence)


def _declarations(tree: ast.Module) -> Iterator[tuple[int, int]]:
    """List the places inside annotations, aliases of types, and the arguments of class statements."""
    for node in ast.walk(tree):
        for part in _declared(node):
            for line in range(part.lineno, (part.end_lineno or part.lineno) + 1):
                first = part.col_offset if line == part.lineno else 0
                last = part.end_col_offset if line == part.end_lineno else None
                yield from ((line, column) for column in range(first, last or WIDTH))


def _declared(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.FunctionDef(returns=ast.expr() as returned):
            return [returned]
        case ast.AnnAssign(annotation=ast.Name(id="TypeAlias"), value=ast.expr() as alias):
            return [alias]
        case ast.arg(annotation=ast.expr() as annotation) | ast.AnnAssign(annotation=annotation):
            return [annotation]
        case ast.ClassDef(keywords=keywords):
            return [keyword.value for keyword in keywords]
    return []


def changed_source(mutant: Mutant) -> str | None:
    """Return the source of a module with a change; None if cosmic-ray cannot make it."""
    source = mutant.path.read_text(encoding="utf-8")
    try:
        changed: str | None = mutate_code(source, plugins.get_operator(mutant.operator)(), mutant.occurrence)
        ast.parse(changed or "")
    except (AttributeError, SyntaxError):  # its ExceptionReplacer knows no dotted names; `*` of arguments is no product
        return None
    return None if changed == source else changed


def try_out(mutant: Mutant, tests: list[str], patience_s: float, *, is_changed: bool = True) -> str:
    """Run tests on a changed module, in a fork; return "killed", "survived" or "too slow"."""
    changed = changed_source(mutant) if is_changed else mutant.path.read_text(encoding="utf-8")
    pid = os.fork()
    if pid == 0:
        os.setsid()
        _replace(str(mutant.path), changed or "")
        commands_in_forks()
        os._exit(_run_tests([str(ROOT / test) for test in tests]))
    ends = time.monotonic() + patience_s
    while time.monotonic() < ends:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return "survived" if status == 0 else "killed"
        time.sleep(0.02)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "too slow"


def _replace(path: str, source: str) -> None:
    """Compile other source in place of a file's."""
    get_code = importlib.machinery.SourceFileLoader.get_code

    def changed(loader: importlib.machinery.SourceFileLoader, name: str) -> CodeType | None:
        return compile(source, path, "exec", dont_inherit=True) if loader.path == path else get_code(loader, name)

    importlib.machinery.SourceFileLoader.get_code = changed  # type: ignore[method-assign]


def _run_tests(tests: list[str], *more: object) -> int:
    _be_silent()
    return int(pytest.main([*tests, *_OPTIONS, *([] if more else ["-x"])], plugins=more))


def _be_silent() -> None:
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)


def drawn(everything: list[Mutant], size: int, chance: random.Random) -> list[Mutant]:
    """Draw places, and one change of each: `+` alone can become eleven other things, most of which fail at once."""
    places: dict[tuple[Path, int, int, str], list[Mutant]] = defaultdict(list)
    for mutant in everything:
        places[mutant.path, mutant.line, mutant.column, mutant.operator.partition("_")[0]].append(mutant)
    order = chance.sample(sorted(places), len(places))
    chosen = (chance.choice(places[place]) for place in order)
    return list(islice((mutant for mutant in chosen if changed_source(mutant) is not None), size))


def difference(mutant: Mutant) -> tuple[str, str]:
    """Return the line before and after."""
    before = mutant.path.read_text(encoding="utf-8")
    after = changed_source(mutant) or ""
    pairs = zip(before.splitlines(), after.splitlines(), strict=False)
    return next(((one.strip(), other.strip()) for one, other in pairs if one != other), ("", "(removed)"))


def interval(killed: int, total: int) -> tuple[float, float]:
    """Return the 95% confidence interval of a share (Wilson)."""
    z, share = 1.96, killed / total
    middle = (share + z * z / (2 * total)) / (1 + z * z / total)
    half = z / (1 + z * z / total) * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    return middle - half, middle + half


def modules_of(package: str) -> list[Path]:
    """List the modules of a package, or the one module that is named."""
    path = PACKAGE / package
    return sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]


def main() -> None:
    """Try a sample of all changes, and print those that no test notices."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("packages", nargs="+", help="such as recording, analyses/structure")
    parser.add_argument("--tests", action="append", default=[], help="other tests, such as observers")
    parser.add_argument("--sweep", action="store_true", help="run the tests of the long sweeps, too")
    parser.add_argument("--sample", type=int, default=100, help="of all changes of these packages together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="where to keep which test reaches which line, for the next time")
    options = parser.parse_args()
    os.environ["CI"] = "true"  # properties draw the same examples in every run
    os.environ["OMP_NUM_THREADS"] = "1"  # forks have no other threads
    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    for name in PRELOADED:
        importlib.import_module(name)
    if options.sweep:
        _OPTIONS.extend(["-m", ""])
    gc.collect()
    gc.freeze()  # else each collection in a fork looks at all of torch's objects, and so copies their memory
    folder: Path = options.folder or Path(os.environ.get("TMPDIR", "/tmp")) / f"mutants-{os.getpid()}"
    folder.mkdir(parents=True, exist_ok=True)
    reach = reach_of([tests_of(name) for name in (*options.packages, *options.tests)], folder)
    everything = [mutant for package in options.packages for path in modules_of(package) for mutant in mutants_of(path)]
    sample = drawn(everything, options.sample, random.Random(options.seed))
    needed = sorted({test for mutant in sample for test in reach.tests_of(mutant)})
    if try_out(sample[0], needed, 30 + PATIENCE * sum(reach.seconds.values()), is_changed=False) != "survived":
        sys.exit("The tests fail without any change.")
    outcomes: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in sorted(sample):
        tests = reach.tests_of(mutant)
        expected = sum(reach.seconds.get(test, 0.0) for test in tests)
        outcome = try_out(mutant, tests, 30 + PATIENCE * expected) if tests else "survived"
        outcomes[outcome].append(mutant)
        if outcome == "survived":
            before, after = difference(mutant)
            print(f"{mutant.place}  {len(tests)} tests\n  - {before}\n  + {after}", flush=True)
    total, survived = len(sample), len(outcomes["survived"])
    low, high = interval(total - survived, total)
    print(
        f"{' '.join(options.packages)}: {total - survived} of {total} killed ({len(outcomes['too slow'])} by time), "
        f"{(total - survived) / total:.0%}; of all, with 95% confidence, {low:.0%} to {high:.0%}"
    )


if __name__ == "__main__":
    main()
