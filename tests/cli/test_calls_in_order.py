"""What a program has replaced is called by each verb as by a plain run, in the same order, up to where it stops."""

import os
import pty
import select
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from runs import unmeasured

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parent.parent / "transparency_programs"
BLOCK = 65536
QUIET_S = 0.5
ON_VALUES = (  # @ is the program
    "@", "trace @", "find @ bytes>0", "saved @", "memory @", "memory @ --iterations 3", "fit @ --real",
    "export @ -o {}/graph.json", "export @ --values -o {}/graph.json", "explore @", "explore @ --gradients", "check @",
    "check @ --steps 1", "grads @", "grads @ --steps 2", "step @", "diff @ @", "diff @ @ --values",
)  # fmt: skip
ON_FAKE_TENSORS = ("fit @", "plan @ --fit 1GiB", "plan @ --fit 1GiB --try", "memory @ --fake", "trace @ --fake")


@pytest.mark.parametrize("words", [*ON_VALUES, *ON_FAKE_TENSORS])
def test_what_is_replaced_most(words: str, tmp_path: Path) -> None:
    """With values and without."""
    check_order("counted_order", words, tmp_path)


@pytest.mark.parametrize(
    "words", ["saved @", "memory @", "explore @", "explore @ --gradients", "diff @ @", "diff @ @ --values"]
)
def test_all_public_functions(words: str, tmp_path: Path) -> None:
    """Where a run ends before the program does, which tells what it has counted at its end: tests/test_transparency.py.

    Only with values: on fake tensors torch itself calls some.
    """
    check_order("counted_calls", words, tmp_path)


def test_a_plan_that_fails_is_no_error_of_the_program(tmp_path: Path) -> None:
    """A changed program calls what the change makes it call, but its excepthook is not called: it may send a message.

    The wrappers hide that the loss is needed for backward, so that a plan deletes it too early.
    """
    expected = plain_calls("counted_order", tmp_path.parent)

    calls = logged(["-m", "gradinspect", "plan", str(FOLDER / "counted_order.py"), "--fit", "1KiB"], tmp_path / "calls")

    (_, as_it_is), *changed = calls.values()
    assert as_it_is == expected[: len(as_it_is)]
    assert changed
    assert "sys.excepthook" in expected
    assert not any("sys.excepthook" in names for _, names in changed)


def check_order(program: str, words: str, folder: Path) -> None:
    """Run a verb, and compare the calls of each process with those of a plain run."""
    file = str(FOLDER / f"{program}.py")
    arguments = [word.replace("@", file).format(folder) for word in words.split()]
    expected = plain_calls(program, folder.parent)

    calls = logged(["-m", "gradinspect", *arguments], folder / "calls")

    assert calls
    for process, (first, names) in calls.items():
        assert names == expected[first : first + len(names)], process


@cache
def plain_calls(program: str, folder: Path) -> list[str]:
    """Return the calls of a run without us."""
    ((first, names),) = logged([str(FOLDER / f"{program}.py")], folder / f"{program}.calls").values()
    assert first == 0
    assert "Tensor.backward" in names
    return names


def logged(words: list[str], pipe: Path) -> dict[str, tuple[int, list[str]]]:
    """Run Python, in a terminal, and return the calls of each process: the number of its first, and the names.

    A fork goes on with the numbers of the process that it is a copy of. The calls come through a named pipe: `fit` and
    `plan` put back the files that a program writes, and `diff` hands no open one on.
    """
    os.mkfifo(pipe)
    log = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)  # both, so that it has no end while nobody writes
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, *words], stdin=theirs, stdout=theirs, stderr=theirs, cwd=pipe.parent,
        env={**unmeasured(), "CALLS_PIPE": str(pipe), "TERM": "xterm", "COLUMNS": "80"},
    )  # fmt: skip
    written = b""
    while process.poll() is None:
        ready = select.select([ours, log], [], [], QUIET_S)[0]
        if ours in ready:
            os.read(ours, BLOCK)
        if log in ready:
            written += os.read(log, BLOCK)
        if not ready:
            os.write(ours, b"q\n")  # `step` and `explore` wait for it
    while select.select([log], [], [], 0)[0]:
        written += os.read(log, BLOCK)
    for file in (ours, theirs, log):
        os.close(file)
    calls: dict[str, tuple[int, list[str]]] = {}
    for line in written.decode().splitlines():
        process_id, number, name = line.split(maxsplit=2)
        first, names = calls.setdefault(process_id, (int(number) - 1, []))
        names.append(name)
        assert int(number) == first + len(names)
    return calls
