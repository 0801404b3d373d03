"""A line on the terminal while a silent program runs: `running train.py ... no backward call yet, 12 s`.

NOTE [Only while the program is silent]
The line must never stand in what the program prints, and nothing of ours may stand in the program's way: no thread,
no child, no file descriptor, no replaced stream. So a process of its own draws it, without a parent, on a line
that it ends, so that the cursor is at the start of an empty line whenever the program begins to write. It is redrawn
only if nobody has written to the terminal since: the terminal's modification time, which is set to a mark after each
drawing, is still that mark. After the first output of the program, by whatever means (tqdm, curses, a forked child),
it is left as it is, and never drawn again.
"""

import mmap
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from gradinspect.cli.output.printing import is_silent

MARK: Final = 86_400  # seconds since 1970: no clock says that
FIRST_S: Final = 1.0  # a program that is faster shows nothing
PERIOD_S: Final = 1.0
TICK_S: Final = 0.05
MAX_WAIT_S: Final = 0.5
DEFAULT_COLUMNS: Final = 80
STOP, DONE, CALLS = range(3)  # bytes that both processes share
ERASE_LINE: Final = "\x1b[A\r\x1b[2K"


class SignOfLife:
    """Sends the other process what happens."""

    def __init__(self) -> None:
        """Start with nothing to report."""
        self._owner = os.getpid()
        self._shared: mmap.mmap | None = None

    def start(self, label: str) -> None:
        """Start the other process, if there is a terminal whose times can be set."""
        terminal = None if is_silent() else _terminal()
        if terminal is None:
            return
        shared = mmap.mmap(-1, 3)
        _mark(terminal)  # before the program can write, so that its first output is seen
        first = os.fork()
        if first:
            os.waitpid(first, 0)
            self._shared = shared
            return
        try:
            if os.fork() == 0:  # its parent ends at once, so that it is no child of the program
                _Drawer(terminal, shared, self._owner, label).run()
        finally:
            os._exit(0)

    def call_reached(self) -> None:
        """Count an engine call."""
        if self._shared is not None:
            self._shared[CALLS] = min(self._shared[CALLS] + 1, 255)

    def end(self) -> None:
        """Have the line erased, if it is still the last one; not in a forked child of the program."""
        shared, self._shared = self._shared, None
        if shared is None or os.getpid() != self._owner:
            return
        shared[STOP] = 1
        until = time.monotonic() + MAX_WAIT_S
        while not shared[DONE] and time.monotonic() < until:
            time.sleep(TICK_S / 10)


@contextmanager
def sign_of_life(label: str) -> Iterator[SignOfLife]:
    """Show that a program runs, until the end of the block or of the sign itself."""
    sign = SignOfLife()
    try:
        sign.start(label)
        yield sign
    finally:
        sign.end()


def _terminal() -> Path | None:
    """Return the terminal behind stderr, if it can be watched."""
    try:
        if sys.platform != "linux" or not sys.stderr.isatty() or os.environ.get("TERM", "dumb") == "dumb":
            return None
        terminal = Path(os.ttyname(sys.stderr.fileno()))
        is_ours = terminal.stat().st_uid == os.geteuid()
    except (OSError, ValueError, AttributeError):
        return None
    return terminal if is_ours else None


def _mark(terminal: Path) -> None:
    os.utime(terminal, (time.time(), MARK))


class _Drawer:
    """Draws the line, in a process of its own."""

    def __init__(self, terminal: Path, shared: mmap.mmap, program: int, label: str) -> None:
        self._terminal = terminal
        self._shared = shared
        self._program = program
        self._label = label
        self._start = time.monotonic()
        self._is_drawn = False

    def run(self) -> None:
        """Draw until the program has ended, is recorded, or writes something."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.closerange(0, 2)
        os.closerange(3, 1024)
        due = self._start + FIRST_S
        while not self._shared[STOP] and self._is_running() and self._is_silent():
            if time.monotonic() >= due:
                self._draw()
                due += PERIOD_S
            time.sleep(TICK_S)
        if self._shared[STOP] and self._is_drawn and self._is_silent():
            os.write(2, ERASE_LINE.encode())
        if self._is_silent():
            os.utime(self._terminal)
        self._shared[DONE] = 1

    def _draw(self) -> None:
        seconds = time.monotonic() - self._start
        calls = self._shared[CALLS]
        reached = "no backward call yet" if not calls else f"{calls} backward call{'s' * (calls > 1)}"
        width = (os.get_terminal_size(2).columns or DEFAULT_COLUMNS) - 1
        line = f"running {self._label} ... {reached}, {seconds:.0f} s"
        drawn = f"{ERASE_LINE * self._is_drawn}{line[:width]}\r\n".encode(errors="replace")
        if self._is_silent():  # asked again: what the program writes between here and the mark is not seen
            os.write(2, drawn)
            _mark(self._terminal)
            self._is_drawn = True

    def _is_silent(self) -> bool:
        return self._terminal.stat().st_mtime == MARK

    def _is_running(self) -> bool:
        return Path(f"/proc/{self._program}").exists()
