"""A program that goes on does what it does without us: its output, warnings, errors, exit status and gradients.

The programs print their gradients and random states as digests, so equal output is equal to the last bit.
"""

import re
import subprocess
import tempfile
from functools import cache
from itertools import takewhile
from pathlib import Path

import pytest
from runs import gradinspect, python
from turns import one_in

from gradinspect.errors import SCRIPT_FAILED

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parent / "transparency_programs"
PARTS = ("fingerprint", "call_counters", "counted_library")
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in PARTS)
FOUND_SOMETHING = 1
CANNOT = 2
UNMEASURED = {
    "signals_and_hooks",
    "mocked_steps",
    "counted_python",
}  # coverage has hooks of its own, and calls what is counted
VALUES = f"export --values --force -o {Path(tempfile.gettempdir()) / 'gradinspect-values.json'}"
VERBS = ("trace", "grads", "check", "check --steps 1", "memory --iterations 3", VALUES, "fit --real", "overview")
NOTICED = {
    ("gc_users", "memory --iterations 3"): "garbage is collected before each count",
    ("signals_and_hooks", "memory --iterations 3"): "gc.callbacks are told of these collections",
    ("profiler_counts", "grads"): "gradients are measured where the program's own profiler sees it",
}
REFUSED = {
    ("profiler_counts", "fit --real"): "starts torch's profiler, of which a process has one, within the first 2 steps."
}
RUNNER_FRAME = re.compile(r'  File "[^"]*(?:fork_server\.py|<frozen runpy>)", .*\n(?:    .*\n)?')


@cache
def plain(program: str) -> "subprocess.CompletedProcess[str]":
    """Run a program as its author does, once."""
    return python(FOLDER / f"{program}.py", is_measured=program not in UNMEASURED)


def without_report(printed: str, expected: str) -> str:
    """Leave out what stands in one piece between what the program printed before it and, at exit, after it."""
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(printed, expected, strict=False))
    before = "".join(same for same, _ in pairs)
    after = expected[len(before) :]
    return before + after if printed.endswith(after) else printed


def without_messages(printed: str) -> str:
    """Leave out our own lines, those that the profiler dates, and the frames of what runs a program in tests."""
    lines = RUNNER_FRAME.sub("", printed).splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith(("gradinspect: ", "USDT:", "Wrote ")))


@pytest.mark.parametrize("program", PROGRAMS[1::2])
def test_nothing_is_changed_by_a_capture(program: str) -> None:
    """By trace or by grads, in turns; the sweep has each program under each verb."""
    words = VERBS[PROGRAMS.index(program) // 2 % 2]
    if (program, words) in NOTICED:
        pytest.xfail(NOTICED[program, words])
    compare(program, words)


@pytest.mark.sweep
@pytest.mark.parametrize("words", VERBS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_nothing_is_changed(program: str, words: str) -> None:
    """Whatever the verb looks at, the program cannot tell; but for a collection, which tells what is alive."""
    if (program, words) in NOTICED:
        pytest.xfail(NOTICED[program, words])
    compare(program, words)


@pytest.mark.parametrize("program", one_in(4, PROGRAMS))
def test_nothing_is_changed_by_check(program: str) -> None:
    """It looks at every operator, and still the program cannot tell."""
    compare(program, "check")


@pytest.mark.parametrize("program", one_in(8, PROGRAMS))
def test_nothing_is_changed_by_fingerprints(program: str) -> None:
    """They are taken of every tensor that the program makes, and of every gradient."""
    compare(program, VALUES)


@pytest.mark.parametrize("program", PROGRAMS[::8])
def test_nothing_is_changed_by_a_measured_step(program: str) -> None:
    """By `fit --real`, which `plan --try` uses too; on fake tensors the program has no values to compare.

    The sweep above has the other programs.
    """
    if (program, "fit --real") in NOTICED:
        pytest.xfail(NOTICED[program, "fit --real"])
    compare(program, "fit --real")


@pytest.mark.parametrize("words", ["saved", "grads --steps 2", "check", VALUES, "fit --real"])
def test_signals_and_hooks_are_the_programs(words: str) -> None:
    """Handlers of signals, hooks of Python and builtins that it has replaced."""
    compare("signals_and_hooks", words)


@pytest.mark.parametrize(
    "words", ["trace", "grads --steps 2", "check", VALUES, "fit --real", "step", "find bytes>0", "overview"]
)
@pytest.mark.parametrize("program", ["counted_calls", "counted_attributes", "counted_classes", "counted_builtins"])
def test_none_of_our_calls_is_counted(program: str, words: str, tmp_path: Path) -> None:
    """NOTE [Our own calls], NOTE [Attributes that a program replaces]. On fake tensors torch itself calls and reads."""
    counts, (verb, *options) = tmp_path / "counts.txt", words.split()

    gradinspect(verb, FOLDER / f"{program}.py", *options, "--continue", typed="c\nq\n", COUNTS_FILE=str(counts))

    assert plain(program).stdout.endswith(counts.read_text())


def test_none_of_the_calls_of_the_library_is_counted() -> None:
    """Also if the program has replaced torch's functions before it imports the library."""
    done = python(FOLDER / "counted_library.py")

    assert done.stdout.splitlines() == ["record True {}", "check True {}", "fit True {}", "capture 0 0"]


def compare(program: str, words: str) -> None:
    """Run a program without us and with us."""
    expected = plain(program)
    verb, *options = words.split()
    is_measured = program not in UNMEASURED
    watched = gradinspect(verb, FOLDER / f"{program}.py", *options, "--continue", is_measured=is_measured)

    assert without_report(watched.stdout, expected.stdout) == expected.stdout
    assert without_messages(watched.stderr) == without_messages(expected.stderr)
    refusal = REFUSED.get((program, words))
    if refusal is not None:
        assert refusal in watched.stderr
        assert watched.returncode == CANNOT
        return
    has_failed = expected.stderr.startswith("Traceback") or "\nTraceback" in expected.stderr
    same = SCRIPT_FAILED if has_failed and expected.returncode == 1 else expected.returncode
    assert watched.returncode in {same, FOUND_SOMETHING if verb == "check" else same}
