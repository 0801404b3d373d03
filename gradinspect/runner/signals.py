"""Keep the program's timers and signal handlers from interrupting our own code.

A program may set an alarm as a time limit, or a handler that raises or exits. Neither should interrupt us: while we
record or print, timers are paused, and a signal that the program handles is delayed until the program continues.

NOTE [Timers of processor time]
The kernel adds a tick of its clock, some milliseconds, to each timer of processor time that is set. A timer that was
paused at each backward call would get further away with each, and never fire. So what was added is taken off again,
and a timer that has less than a tick left is due: it fires no more exactly than that.
Source: set_cpu_itimer in kernel/time/itimer.c, Linux 6.

Only the main thread runs handlers, so other threads need no care. Names that a platform lacks are skipped: Windows has
no timers and few signals.
"""

import faulthandler
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import get_ident, main_thread
from types import FrameType, TracebackType
from typing import Any

from gradinspect.runner.waiting_handler import handler_of, program_handler, set_handler, take_waiting

_TIMERS: dict[Any, int] = {
    getattr(signal, name): getattr(signal, fires)
    for name, fires in (("ITIMER_REAL", "SIGALRM"), ("ITIMER_VIRTUAL", "SIGVTALRM"), ("ITIMER_PROF", "SIGPROF"))
    if hasattr(signal, name)
}  # what they send
_MEANT_FOR_US = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGPIPE", "SIGCHLD") if hasattr(signal, name)
)  # while we print, after the program
_SIGNALS = tuple(signal.valid_signals())  # listed once: it takes longer than to ask for their handlers
_raise = signal.raise_signal  # a program may replace it
_set_timer: Any = getattr(signal, "setitimer", None)
_timer_of: Any = getattr(signal, "getitimer", None)
_AT_ONCE_S = 1e-6  # the shortest time that a timer can have
_INTERRUPTS = signal.default_int_handler


class HeldSignals:
    """The paused timers and delayed signals of a program."""

    def __init__(self, ours: Mapping[int, Any] | None = None) -> None:
        """Pause the timers, and record signals that the program would handle.

        Args:
            ours: The handlers from before the program, for signals sent to us after it has ended.
        """
        self._timers = {timer: _set_timer(timer, 0) for timer in _TIMERS}
        self._missed: list[int] = []
        self._theirs = {}
        for number, handler in _handlers().items():
            theirs = program_handler(handler)
            wanted = self._wanted(number, theirs, ours)
            if wanted != handler:
                self._theirs[number] = handler if ours is None else theirs
                if ours is not None and wanted != theirs:
                    self._take_waiting(number, handler)
                set_handler(number, wanted)

    def _take_waiting(self, number: int, handler: Any) -> None:
        """Record a signal that still waits: it came while the program ran, and is not for us."""
        set_handler(number, self._note)  # Python calls it before it sets the next one
        if take_waiting(handler):
            self._note(number, None)

    def release(self) -> None:
        """Resume; the program's handlers are now called for delayed signals, and may raise."""
        _send(self.resume())

    def resume(self) -> list[int]:
        """Resume; return the signals that are still to be sent."""
        for number, handler in self._theirs.items():
            set_handler(number, handler)
        for timer, (seconds, interval) in self._timers.items():
            if seconds and _is_due(timer, seconds, interval):
                self._note(_TIMERS[timer], None)
        missed, self._missed = self._missed, []
        return missed

    def drop_timers(self) -> None:
        """Drop the timers: what they were set for has ended."""
        self._timers = {}

    def _wanted(self, number: int, handler: Any, ours: Mapping[int, Any] | None) -> Any:
        if ours is not None and (number in _MEANT_FOR_US or not callable(handler)):
            return ours.get(number, handler)
        is_theirs = callable(handler) and handler is not _INTERRUPTS
        return self._note if is_theirs else handler

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if number not in self._missed:
            self._missed.append(number)


def _send(numbers: list[int]) -> None:
    """Send signals to this thread, also those after one whose handler raises."""
    if numbers:
        try:
            _raise(numbers[0])
        finally:
            _send(numbers[1:])


def _is_due(timer: Any, seconds: float, interval: float) -> bool:
    """Resume a timer; return whether it would have fired by now. NOTE [Timers of processor time]."""
    _set_timer(timer, seconds, interval)
    added = _timer_of(timer)[0] - seconds
    if added <= 0:
        return False
    is_due = bool(seconds <= added)
    left = interval if is_due else seconds
    _set_timer(timer, max(left - added, _AT_ONCE_S) if left else 0, interval)
    return is_due


@contextmanager
def held_signals() -> Iterator[None]:
    """Hold the program's timers and signals while our own code runs.

    Raises:
        BaseException: Raised by a handler of the program afterwards.
    """
    held = HeldSignals() if _is_main_thread() else None
    try:
        yield
    finally:
        if held is not None:
            held.release()


class ProgramSignals:
    """The signals and timers of a program that has ended, while we report. Create it before the program runs."""

    def __init__(self) -> None:
        """Store our handlers."""
        self._ours = _handlers()
        self._held: HeldSignals | None = None

    def restore(self, *, was_stopped: bool = False) -> None:
        """Restore our handlers.

        Args:
            was_stopped: Whether we have stopped the program. A timer that it would have ended itself, or that it has as
                a time limit, might end the process while Python ends.
        """
        faulthandler.cancel_dump_traceback_later()
        if _is_main_thread():
            self._held = HeldSignals(self._ours)
            if was_stopped:
                self._held.drop_timers()

    def hand_back(self) -> None:
        """Give the program's last handlers its signals. There is nothing left for them to end."""
        held, self._held = self._held, None
        for number in held.resume() if held is not None else ():
            try:
                _raise(number)
            except SystemExit:
                pass
            except BaseException as error:
                error.__traceback__ = _of_handler(error.__traceback__)
                sys.excepthook(type(error), error, error.__traceback__)


def _of_handler(trace: TracebackType | None) -> TracebackType | None:
    """Leave out our frames, which are those that begin it."""
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return trace


def _is_main_thread() -> bool:
    return get_ident() == main_thread().ident


def _handlers() -> dict[int, Any]:
    """Map each signal to its handler, if it was set from Python."""
    found = {number: handler_of(number) for number in _SIGNALS}
    return {number: handler for number, handler in found.items() if handler is not None}
