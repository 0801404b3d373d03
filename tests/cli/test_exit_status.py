"""With --continue a program ends with the status that it has under python."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from runs import gradinspect, python

pytestmark = pytest.mark.slow

HEAD = "import os, signal, sys, torch\n(torch.ones(2, requires_grad=True) * 2).sum().backward()\n"
ENDINGS = {
    "a number": "sys.exit(5)",
    "a text": "sys.exit('that was all')",
    "an object without a text": "class Bad:\n    def __str__(self): raise ValueError\nsys.exit(Bad())",
    "minus one": "sys.exit(-1)",
    "no stderr": "sys.stderr = None\nsys.exit('unheard')",
    "a handler of a signal": "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
    "os.kill(os.getpid(), signal.SIGTERM)\nimport time\ntime.sleep(60)",
    "os._exit in an exit handler": "import atexit\natexit.register(lambda: (sys.stdout.flush(), os._exit(9)))",
    "failing tests": "import unittest\nclass Case(unittest.TestCase):\n    def test_it(self): self.fail()\n"
    "unittest.main(argv=['x'])",
    "wrong arguments": "import argparse\nargparse.ArgumentParser(prog='x').parse_args(['--nothing'])",
    "none": "",
}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_the_status_of_a_program_is_ours(ending: str, tmp_path: Path) -> None:
    """And so is what it prints on its way out."""
    script = tmp_path / "script.py"
    script.write_text(HEAD + ending + "\n")
    plain = python(script)
    watched = gradinspect("trace", script, "--continue")

    assert plain.returncode == watched.returncode
    assert _without_times(plain.stderr) == _without_times(watched.stderr)
    assert "MulBackward0" in watched.stdout


def test_the_report_comes_before_threads_and_exit_handlers(tmp_path: Path) -> None:
    """They may hang or end the process; what they print comes last, in the order of python."""
    script = tmp_path / "script.py"
    script.write_text(
        f"{HEAD}import atexit, threading\n"
        "atexit.register(lambda: print('handler'))\nprint('end')\n"
        "def work():\n    threading.main_thread().join()\n    print('thread')\nthreading.Thread(target=work).start()\n"
    )
    plain = python(script).stdout.splitlines()
    watched = gradinspect("trace", script, "--continue").stdout.splitlines()

    assert plain == ["end", "thread", "handler"]
    assert (watched[0], watched[-2:]) == ("end", ["thread", "handler"])
    assert any("MulBackward0" in line for line in watched[1:-2])


def _without_times(printed: str) -> str:
    return re.sub(r"in \d+\.\d+s", "", printed)


@pytest.mark.parametrize(
    ("words", "body", "status"),
    [
        ("trace", "sys.exit(5)", 0),  # it was stopped before
        ("grads --continue", "sys.exit(5)", 5),
        ("check --continue", "sys.exit(5)", 5),
        ("check --continue", "torch.zeros(1, requires_grad=True).sqrt().mul(0).sum().backward()\nsys.exit(5)", 1),
        ("trace --continue", "raise ValueError", 3),
        ("trace --continue", "raise KeyboardInterrupt", 130),
        ("trace --continue --backward 9", "sys.exit(6)", 6),
    ],
)  # fmt: skip
def test_whose_status_counts(words: str, body: str, status: int, tmp_path: Path) -> None:
    """A finding of check counts before the program's own status; a traceback is 3, whatever is let run."""
    script = tmp_path / "script.py"
    script.write_text(HEAD + body + "\n")
    verb, *options = words.split()

    assert gradinspect(verb, script, *options).returncode == status


def test_an_error_without_a_text(tmp_path: Path) -> None:
    """An exception whose `__str__` raises is printed as python prints it."""
    script = tmp_path / "script.py"
    script.write_text("import torch\nclass Bad(Exception):\n    def __str__(self): raise ValueError\nraise Bad\n")
    plain = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    watched = gradinspect("trace", script)
    *traceback, sentence = watched.stderr.splitlines()

    assert plain.stderr.splitlines() == traceback
    assert (watched.returncode, sentence) == (3, "gradinspect: The script failed before any backward call: Bad.")


DAEMONS = """
import atexit, sys, threading, time, torch
sys.setswitchinterval(1e-5)
torch.set_num_threads(1)
def train():
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    while True:
        optimizer.zero_grad()
        model(torch.randn(3, 4)).square().mean().backward()
        optimizer.step()
atexit.register(print, "handler")
for _ in range(3):
    threading.Thread(target=train, daemon=True).start()
time.sleep(60)
"""


def test_daemon_threads_that_go_on_do_not_end_the_process_by_a_signal(tmp_path: Path) -> None:
    """The rest of the program would have ended them; once in four times Python's end met one inside of torch."""
    script = tmp_path / "script.py"
    script.write_text(DAEMONS)
    for _ in range(8):
        done = gradinspect("trace", script)
        assert done.returncode == 0, done.stderr
        assert done.stdout.endswith("handler\n")
        assert "MeanBackward0" in done.stdout
        assert done.stderr == ""
