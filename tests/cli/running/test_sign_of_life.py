"""The line on a terminal while a silent program runs: never in what the program prints, and nothing in its way."""

import os
import pty
import subprocess
import sys

import pytest
from runs import unmeasured

from gradinspect.cli.running.sign_of_life import ERASE_LINE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a terminal's times are watched on Linux only")
LINE = b"running train.py ... no backward call yet, "
PROGRAM = """
import os, sys, time
from gradinspect.cli.running import sign_of_life as ours
ours.FIRST_S = ours.PERIOD_S = 0.15

def draw(seconds=0.6):
    time.sleep(seconds)

before = len(os.listdir("/proc/self/fd"))
with ours.sign_of_life("train.py") as sign:
    {body}
"""


def on_a_terminal(body: str) -> bytes:
    """Run statements beside the sign of life on a pseudo-terminal, and return what it was sent."""
    pid, terminal = pty.fork()
    if pid == 0:
        environment = {**unmeasured(), "TERM": "xterm"}  # a line is drawn when time is up
        os.execve(sys.executable, [sys.executable, "-c", PROGRAM.format(body=body)], environment)  # noqa: S606  # as a shell does
    sent = b""
    try:
        while part := os.read(terminal, 65536):
            sent += part
    except OSError:  # the other side is closed
        pass
    os.close(terminal)
    assert os.waitpid(pid, 0)[1] == 0, sent
    return sent.replace(b"\r\r\n", b"\r\n")


@pytest.mark.slow
def test_a_silent_program_has_a_line_that_goes_away() -> None:
    """With its calls counted and its seconds."""
    sent = on_a_terminal("draw(); sign.call_reached(); draw(); sign.end(); print('result')")

    assert sent.startswith(LINE)
    assert b"running train.py ... 1 backward call, " in sent
    assert sent.endswith(ERASE_LINE.encode() + b"result\r\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    "writes",
    [
        "print('epoch 1', flush=True)",
        "sys.stderr.write('epoch 1\\n')",
        "os.write(1, b'epoch 1\\n')",
        "os.system('echo epoch 1')",
        "open('/dev/tty', 'w').write('epoch 1\\n')",
    ],
)
def test_a_program_that_writes_has_its_output_whole(writes: str) -> None:
    """By whatever means; nothing is drawn any more, and nothing is erased."""
    sent = on_a_terminal(f"draw(); {writes}; draw(); print('epoch 2', flush=True); draw()")

    assert sent.startswith(LINE)
    assert sent.endswith(b" s\r\nepoch 1\r\nepoch 2\r\n")


def test_a_line_that_is_begun_is_not_broken() -> None:
    """As of a progress bar, or of a question."""
    sent = on_a_terminal("print('loading ... ', end='', flush=True); draw(); print('done', flush=True)")

    assert sent == b"loading ... done\r\n"


def test_nothing_of_it_is_in_the_program() -> None:
    """No child to wait for, no descriptor, no thread; a forked child ends without a word."""
    sent = on_a_terminal(
        "import threading; print(len(os.listdir('/proc/self/fd')) - before, threading.active_count()); draw(0.1)\n"
        "    try: os.wait()\n"
        "    except ChildProcessError: print('no child', flush=True)\n"
        "    if os.fork() == 0: sys.exit()\n"
        "    os.wait()"
    )

    assert sent == b"0 1\r\nno child\r\n"


def test_a_pipe_gets_nothing() -> None:
    """Nor does a terminal that cannot move its cursor."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(body="draw()")], capture_output=True, text=True, check=True
    )

    assert done.stdout + done.stderr == ""
