"""What is imported before a program begins does not take its signals."""

import signal
from pathlib import Path

import pytest
from runs import gradinspect

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(signal, "sigtimedwait"), reason="nothing there waits for a signal"),
]

PROGRAM = """
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
import torch
handled, awaited = [], []
signal.signal(signal.SIGUSR1, lambda *_: handled.append(1))
weight = torch.ones(4, requires_grad=True)
for _ in range(20):
    os.kill(os.getpid(), signal.SIGUSR1)
    weight.square().sum().backward()
    if signal.sigtimedwait({signal.SIGUSR1}, 0):
        awaited.append(1)
print("awaited:", len(awaited), "handled:", len(handled))
"""


@pytest.mark.parametrize("verb", ["grads --continue", "check"])
def test_a_signal_that_a_program_blocks_in_all_threads_waits_for_it(verb: str, tmp_path: Path) -> None:
    """NumPy starts a thread as it is imported with torch, before the program can block anything."""
    (tmp_path / "script.py").write_text(PROGRAM)
    words = (*verb.split(), "script.py")
    done = gradinspect(*words, cwd=tmp_path, is_new=True, OPENBLAS_NUM_THREADS="2", OMP_NUM_THREADS="2")

    assert "awaited: 20 handled: 0" in done.stdout + done.stderr, done.stdout + done.stderr
