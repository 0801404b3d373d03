"""A signal handler of the program that is called where the program's own code runs, and never in the middle of ours.

Python calls a handler between two instructions of whatever the main thread is in. What a handler raises there goes on
from there: out of our code, which would be cut off at any place with a mode, a hook or a list half changed, or into one
of our `except`, which would keep it from the program.

NOTE [Handlers that wait]
So what is registered with Python is a handler of ours, which calls the program's if the program runs. If we do, it
sends the signal again as it returns: Python calls it again some instructions later, until the program goes on. That
needs nothing in the code that is interrupted, and ends at the first instruction of the program at which Python looks
for signals. The signal must not be sent before the handler has returned, or it would arrive in the handler itself; so
an object sends it as it is freed.

Python 3.11 does that under a tracer or a profiler before the instruction at which a function begins, and then looks
again before the same one: it would call the handler forever. There a thread sends the signal, after our code had time
to go on.
"""

import importlib
import signal
import sys
from _thread import interrupt_main
from collections.abc import Callable
from functools import partial
from time import monotonic, sleep
from types import FrameType
from typing import Any

from gradinspect.own_threads import start_thread

BELOW: Any = importlib.import_module("_signal")  # what `signal` calls, which has no types
set_handler, handler_of = BELOW.signal, BELOW.getsignal  # what is registered: a program may replace those of `signal`
LONGEST_INTERRUPT_S = 0.5  # how long our code may delay Ctrl-C, for which somebody waits
_PAUSE_S = 0.001  # before a thread sends the signal again, so that our code can go on
_TRACERS = sys.gettrace, sys.getprofile
_CALLS_FOR_EVER = sys.version_info[:2] == (3, 11)
_INTERRUPTS = signal.default_int_handler
_AGAIN: dict[int, type] = {
    number: type("_Again", (), {"__del__": staticmethod(partial(interrupt_main, number))})
    for number in signal.valid_signals()
}


class WaitingHandler:
    """Stands for a handler of the program, which waits while our code runs. NOTE [Handlers that wait]."""

    __slots__ = ("_is_ours", "_since", "handler", "is_waiting")

    def __init__(
        self, handler: Callable[[int, FrameType | None], object], is_ours: Callable[[FrameType | None], bool]
    ) -> None:
        """Stand for a handler.

        Args:
            handler: The program's.
            is_ours: Returns whether our own code runs in a frame.
        """
        self.handler = handler
        self._is_ours = is_ours
        self._since: float | None = None  # when the signal came that waits
        self.is_waiting = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Call the program's handler, now or later."""
        self.is_waiting = self._is_ours(frame) and not self._is_late()
        if self.is_waiting:
            if _CALLS_FOR_EVER and any(look() is not None for look in _TRACERS):
                start_thread(_send_later, self, number)
            else:
                _again = _AGAIN[number]()  # freed at the end
            return
        self._since = None
        try:
            self.handler(number, frame)
        except BaseException as error:  # NOTE [No frame of ours in a traceback] in `recording.recorder`
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            raise

    def _is_late(self) -> bool:
        """Return whether Ctrl-C was pressed, and has waited for too long."""
        if self.handler is not _INTERRUPTS:
            return False
        now = monotonic()
        self._since = self._since or now
        return now - self._since > LONGEST_INTERRUPT_S


def _send_later(handler: WaitingHandler, number: Any) -> None:
    """Send a signal that still waits to the main thread, from another one."""
    sleep(_PAUSE_S)
    if handler.is_waiting:
        interrupt_main(number)


def program_handler(handler: Any) -> Any:
    """Return the program's handler for what is registered with Python."""
    return handler.handler if type(handler) is WaitingHandler else handler


def take_waiting(handler: Any) -> bool:
    """Return whether a signal waits for a handler, which is not called for it any more."""
    if type(handler) is not WaitingHandler or not handler.is_waiting:
        return False
    handler.is_waiting = False
    return True
