"""A child of ours runs a program, and leaves what it has inherited to its parent."""

from pathlib import Path

from runs import python

INHERITS = """
import pathlib, tempfile
from gradinspect.runner.forked import run_forked

folders = [tempfile.TemporaryDirectory()]

def run(send):
    folders.append(tempfile.TemporaryDirectory())
    send(folders[1].name.encode())

sent, status = run_forked(run, is_silent=False)
print(status, pathlib.Path(folders[0].name).exists(), pathlib.Path(sent.decode()).exists())
"""


COUNTS = """
import os, random, select, threading, time
from gradinspect.runner.branches import WaitingRun
from gradinspect.runner.forked import run_forked, run_in_copy

counts = []

def count(holder, name):
    original = getattr(holder, name)
    setattr(holder, name, lambda *args: counts.append(name) or original(*args))

def run(send):
    send(run_in_copy(lambda: repr(counts).encode(), seconds=30))

def run_waiting(send, branches):
    send(branches.wait() or repr(counts).encode())

for name in ("fork", "pipe", "close", "waitpid", "waitstatus_to_exitcode", "read", "write", "_exit", "dup2", "kill"):
    count(os, name)
for holder, name in ((time, "monotonic"), (select, "select"), (random, "getstate"), (threading, "active_count")):
    count(holder, name)
print(*run_forked(run, is_silent=False))
waiting = WaitingRun(run_waiting, is_silent=True)
print(*waiting.ask(b"asked", is_silent=True), waiting.close(), counts)
"""


def test_functions_of_os_that_a_program_has_replaced_are_not_called(tmp_path: Path) -> None:
    """A copy of a program is made in the middle of it, and ends there."""
    (tmp_path / "counts.py").write_text(COUNTS)
    done = python(tmp_path / "counts.py", is_measured=False)

    assert (done.stdout, done.stderr) == ("b'[]' 0\nb'asked' 0 0 []\n", "")


def test_a_child_finalizes_what_it_has_made(tmp_path: Path) -> None:
    """Its temporary folder goes with it, that of its parent stays."""
    (tmp_path / "parent.py").write_text(INHERITS)
    done = python(tmp_path / "parent.py")

    assert (done.stdout, done.stderr) == ("0 True False\n", "")
