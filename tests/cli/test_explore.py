"""`gradinspect explore`: what it needs, and how it leaves the terminal."""

import os
import pty
import select
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from importlib import util
from pathlib import Path
from types import SimpleNamespace

import pytest
from factories import product_plus_two

from gradinspect.cli import explore, main
from gradinspect.storage import encode_graph

TAKE_SCREEN, GIVE_BACK = b"\x1b[?1049h", b"\x1b[?1049l"
HIDE_CURSOR, SHOW_CURSOR = b"\x1b[?25l", b"\x1b[?25h"
PATIENCE_S = 300


def test_a_pipe_is_no_terminal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Nothing is run, and another command is named."""
    script = tmp_path / "script.py"
    script.write_text("raise SystemExit('ran')")

    assert main(["explore", str(script)]) == 2
    assert capsys.readouterr().err == (
        "gradinspect: 'explore' needs an interactive terminal, but stdin is not one. "
        "Use: gradinspect trace, or export -o graph.html.\n"
    )


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command see a terminal."""
    stream = SimpleNamespace(isatty=lambda: True)
    monkeypatch.setattr(explore, "sys", SimpleNamespace(stdin=stream, stdout=stream, stderr=stream))
    monkeypatch.setenv("TERM", "xterm")


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """Write a capture file."""
    path = tmp_path / "run.json"
    path.write_bytes(encode_graph(product_plus_two(), compressed=False))
    return path


@pytest.mark.usefixtures("terminal")
def test_a_terminal_that_cannot_move_its_cursor(
    capture: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as the shell inside an editor."""
    monkeypatch.setenv("TERM", "dumb")

    assert main(["explore", str(capture)]) == 2
    assert "does not work on a 'dumb' terminal" in capsys.readouterr().err


@pytest.mark.usefixtures("terminal")
def test_the_extra_is_named(capture: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without textual, how to install it."""
    monkeypatch.setattr(util, "find_spec", lambda _name: None)

    assert main(["explore", str(capture)]) == 2
    assert capsys.readouterr().err == (
        "gradinspect: 'explore' needs the textual package. Install it: pip install 'gradinspect[explore]'\n"
    )


def read_until(file: int, wanted: bytes, output: bytes = b"") -> bytes:
    """Read on what a program writes to its terminal until some bytes have come, or it ends."""
    end = time.monotonic() + PATIENCE_S
    while wanted not in output and time.monotonic() < end:
        if select.select([file], [], [], 0.1)[0]:
            try:
                output += os.read(file, 65536)
            except OSError:  # the program has ended
                break
    return output


@pytest.fixture
def opened() -> Iterator[tuple[int, int]]:
    """Open a terminal: our end of it, and the program's."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    yield ours, theirs
    os.close(ours)
    os.close(theirs)


def test_a_real_terminal_is_left_as_it_was(opened: tuple[int, int], capture: Path) -> None:
    """The screen is given back, the cursor is shown, keys are echoed again; only the first sixteen colors are used."""
    ours, theirs = opened
    before = termios.tcgetattr(theirs)
    program = subprocess.Popen(
        [sys.executable, "-m", "gradinspect", "explore", capture], stdin=theirs, stdout=theirs, stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"},
    )  # fmt: skip
    output = read_until(ours, b"q quit")
    os.write(ours, b"jq")
    output = read_until(ours, GIVE_BACK, output)
    output = output[: output.index(GIVE_BACK)] + read_until(ours, SHOW_CURSOR, output[output.index(GIVE_BACK) :])

    assert program.wait(PATIENCE_S) == 0
    assert output.index(TAKE_SCREEN) < output.index(b"MulBackward0") < output.rindex(GIVE_BACK)
    assert output.rindex(HIDE_CURSOR) < output.rindex(SHOW_CURSOR)
    assert b"38;2;" not in output
    assert b"38;5;" not in output
    assert termios.tcgetattr(theirs) == before
