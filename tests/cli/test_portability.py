"""Nothing that only POSIX systems have is needed: every verb works where the names are missing."""

from pathlib import Path

import pytest
from runs import python

pytestmark = pytest.mark.slow

# torch itself is imported first, since what is asked here is what we need. `_posixsubprocess` is how Python starts
# processes on this machine, and it has Windows' own way there.
WITHOUT = """
import importlib, os, signal, sys
import torch, torch._dynamo, subprocess, multiprocessing, asyncio, tempfile, typer.main, rich.console, webbrowser
for name in ("fcntl", "termios", "tty", "resource", "pwd", "grp", "pty", "curses", "readline"):
    sys.modules[name] = None
for name in ("fork", "forkpty", "register_at_fork", "killpg", "getpgid", "setpgid", "setsid", "getuid", "geteuid",
             "getgid", "wait", "waitid", "WIFEXITED", "mkfifo", "chown", "pread", "sched_getaffinity", "getloadavg",
             "uname", "sysconf", "posix_spawn", "ttyname", "O_NOFOLLOW", "O_CLOEXEC", "O_DIRECTORY"):
    if hasattr(os, name):
        delattr(os, name)
kept = {"SIGABRT", "SIGFPE", "SIGILL", "SIGINT", "SIGSEGV", "SIGTERM", "SIG_DFL", "SIG_IGN"}
gone = {"alarm", "setitimer", "getitimer", "pthread_kill", "pthread_sigmask", "sigwait", "siginterrupt", "pause"}
for name in list(vars(signal)):
    if name in gone or name.startswith("ITIMER") or (name.startswith("SIG") and name not in kept):
        delattr(signal, name)
def no_terminal(*_):
    raise OSError(25, "Inappropriate ioctl for device")
os.get_terminal_size = no_terminal
from gradinspect.cli import main
sys.exit(main())
"""

PROGRAM = """
import threading, torch
torch.manual_seed(0)
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 2
    @staticmethod
    def backward(ctx, grad): return grad * 2
model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    Twice.apply(model(torch.ones(2, 3))).sum().backward()
    optimizer.step()
"""

VERBS = (
    "trace train.py -o a.svg -o a.html -o a.json -o a.png",
    "trace train.py --fake --quiet-script",
    "saved train.py --continue",
    "memory train.py --iterations 2",
    "check train.py --gradcheck",
    "grads train.py --steps 2",
    "grads train.py --timeline t.json",
    "step train.py --report steps.md",
    "explain mul GI101",
    "explain --list",
    "--version",
)


@pytest.mark.parametrize("words", VERBS)
def test_every_verb_works_without_posix(words: str, tmp_path: Path) -> None:
    """Its status is 0, and it says nothing of what it lacks."""
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "windows.py").write_text(WITHOUT)
    done = python(tmp_path / "windows.py", *words.split(), cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert all(line.startswith("Wrote ") for line in done.stderr.splitlines())
