"""Start threads of ours, which take no signal from the program.

A signal that is sent to a process goes to any thread that does not block it. A program may block one in its threads, to
handle it later or to wait for it with `signal.sigwait`. A thread of ours that did not block it would have the program's
handler called meanwhile, or the process ended. A thread begins with the mask of the one that starts it.
"""

import signal
from _thread import start_new_thread
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_OF_A_FAULT = ("SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV", "SIGTRAP")  # of the thread itself
_BLOCKED = signal.valid_signals() - {getattr(signal, name) for name in _OF_A_FAULT if hasattr(signal, name)}
_mask: Any = getattr(signal, "pthread_sigmask", None)  # Windows has none, and a program may replace it


@contextmanager
def signals_blocked(*but: int) -> Iterator[None]:
    """Start only threads that block all signals, but for some."""
    before = None if _mask is None else _mask(signal.SIG_BLOCK, _BLOCKED - {*but})
    try:
        yield
    finally:
        if before is not None:
            _mask(signal.SIG_SETMASK, before)


def start_thread(function: Callable[..., object], *arguments: object) -> None:
    """Run a function in a thread that blocks all signals, and that the program does not see among its threads."""
    with signals_blocked():
        start_new_thread(function, arguments)
