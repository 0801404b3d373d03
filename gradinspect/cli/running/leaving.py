"""End a process whose program was stopped, while threads of it go on that the rest of the program would have ended.

NOTE [Daemon threads at exit]
A program that trains in daemon threads ends them at its own end, or in a function of atexit. If it was stopped before
it had said so, nobody does. Python ends such a thread where it next needs the GIL: inside of torch's C++ code that is
`std::terminate`, and the whole process dies of signal 6 after its report. So it ends as Python would, waits for threads
that are not daemons and runs the functions of atexit, but is not taken down piece by piece.
"""

import threading
from contextlib import suppress

from gradinspect.runner.ending import end_process

_enumerate = threading.enumerate  # a program may replace it


class _Program:
    """What is known of the program at the end of this process."""

    was_stopped = False


def note_stop() -> None:
    """Note that the program of this process did not come to its end."""
    _Program.was_stopped = True


def leave(exit_code: int) -> int:
    """Return the exit code, or end the process with it. NOTE [Daemon threads at exit]."""
    if not _Program.was_stopped or not any(thread.daemon for thread in _enumerate()):
        return exit_code
    with suppress(Exception):
        threading._shutdown()  # type: ignore[attr-defined]  # what Python calls at its end
    return end_process(exit_code)
