"""A walked chain of any depth is freed without overflowing the C stack."""

import subprocess
import sys

import pytest

PROGRAM = """
import gc, sys, torch
from gradinspect.recording import release
from gradinspect.recording.walk import Walk
x = torch.ones(2, requires_grad=True)
y = x
for _ in range(120_000):
    y = y + x
walk = Walk([y.grad_fn])
if "fail" in sys.argv:
    try:
        walk.numbers = None
        walk.numbers.clear()
    except AttributeError:
        walk.numbers = {}
walk.close()
if "backward" in sys.argv:
    y.sum().backward()
if "exit" in sys.argv:
    sys.exit()
half = None
if "half" in sys.argv:
    half = y.grad_fn
    for _ in range(60_000):
        half = half.next_functions[0][0]
del y
gc.collect(0)
if half is not None:
    print("kept", len(release._parked))
    del half
    gc.collect(0)
print("parked", len(release._parked), release._on_collection in gc.callbacks)
"""


@pytest.mark.parametrize("how", ["drop", "backward", "exit", "half", "fail"])
def test_a_deep_chain_dies_in_peace(how: str) -> None:
    """The process lives on, and nothing of the graph is held, whichever way the chain goes."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, timeout=120, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    if how != "exit":
        assert done.stdout.splitlines()[-1] == "parked 0 False"


def test_a_chain_that_was_never_parked_ends_the_process() -> None:
    """The fact that all this rests on: torch frees a walked chain by recursion."""
    program = PROGRAM.replace("walk.close()\n", "walk.nodes.clear(); walk.numbers.clear(); del walk\n", 1)
    done = subprocess.run(
        [sys.executable, "-c", program, "drop"], capture_output=True, text=True, timeout=120, check=False
    )

    assert done.returncode != 0
