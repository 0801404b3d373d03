"""A run that waits, and goes on in copies of its process."""

from pathlib import Path

import pytest
from runs import python

_RUN = """
import os, random, sys, threading, time
from gradinspect.runner.branches import WaitingRun

def run(send, branches):
    random.seed(7)
    {before}
    request = branches.wait() if branches.can_wait(engine_has_run={has_run}) else b"never"
    print("goes on", request, flush=True)
    {after}
    send(b"%d %d %s" % (os.getpid() == run_in, random.randrange(1000), request or b""))

run_in = os.getpid()
first = WaitingRun(run, is_silent=False)
other = WaitingRun(run, is_silent=True)
print(first.ask(b"a", is_silent=False), first.is_waiting and first.ask(b"b", is_silent=True))
print(other.ask(b"c", is_silent=False))
print(first.close(), first.close(), other.close())
"""


def run(folder: Path, before: str = "pass", after: str = "pass", *, has_run: bool = True) -> list[str]:
    """Run it, and return what was printed."""
    (folder / "waits.py").write_text(_RUN.format(before=before, after=after, has_run=has_run))
    done = python(folder / "waits.py", cwd=folder)

    assert not done.returncode, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_each_request_goes_on_in_a_copy_with_the_same_random_numbers(tmp_path: Path) -> None:
    """A copy that should print does; one that is silent, and the run itself once nobody asks, print nothing."""
    lines = run(tmp_path)

    assert lines == [
        "goes on b'a'",
        "(b'0 331 a', 0) (b'0 331 b', 0)",
        "(b'0 331 c', 0)",
        "0 0 0",
    ]


def test_a_run_that_shares_something_does_not_wait(tmp_path: Path) -> None:
    """An open file has one position for all copies; a thread or a child would be missed by them."""
    for before in (
        "file = open('waits.py')",
        "threading.Thread(target=time.sleep, args=(9,), daemon=True).start()",
        "child = os.fork() or time.sleep(1) or os._exit(0)",
    ):
        lines = run(tmp_path, before)

        assert lines[1] == "(b'0 331 never', 0) False"


_CUDA = "import torch; torch.accelerator.current_accelerator = lambda: torch.device('cuda')"


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="this system does not say which threads there are")
@pytest.mark.parametrize("has_run", [True, False])
def test_a_torch_built_for_cuda_waits_where_there_is_no_device(tmp_path: Path, *, has_run: bool) -> None:
    """Its engine has started no thread for one; it may still, where it has not run."""
    lines = run(tmp_path, _CUDA, has_run=has_run)

    assert lines[1] == ("(b'0 331 a', 0) (b'0 331 b', 0)" if has_run else "(b'0 331 never', 0) False")


def test_a_copy_that_dies_does_not_end_the_others(tmp_path: Path) -> None:
    """How it ended is told."""
    lines = run(tmp_path, after="os.kill(os.getpid(), 9) if request == b'a' else None")

    assert lines[1] == "(b'', -9) (b'0 331 b', 0)"
