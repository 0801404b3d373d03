"""End the user's program early and cleanly, from inside one of its calls.

NOTE [A stop that cannot be swallowed]
The stop is a SystemExit, so threads end on it silently and `except Exception` lets it pass. A bare `except:` does not.
Code that swallows it has a frame on the stack at the time it was raised. So a trace function watches exactly those
frames: a line event in one of them while the stop is not being handled means that it was swallowed, and raises it
again, outside the `try` that caught it. `finally:` blocks, `with` exits and handlers handle the stop, or an exception
that has it as context, so they run undisturbed; so do `__del__` methods and new calls, which have their own frames.
CPython switches tracing off when a trace function raises; a profile function switches it on again at the next call or
return.

NOTE [A tracer of the program]
Coverage tools and debuggers trace the program, too. They get the events of the frames that we watch, and of new calls,
as if we were not there: a coverage tool that misses a return takes the lines that follow for those of the wrong file. A
tracer written in C, as coverage's is, puts itself in our place at each call that it traces; the profile function
takes that place again.

NOTE [A stop inside a test runner]
pytest treats a SystemExit as an internal crash or a failed test. It ends cleanly, with its fixtures and its summary,
on a KeyboardInterrupt. So one is raised there, and only the frames inside the test are watched.

NOTE [A stop from another thread]
A program ends with its main thread, which may be blocked in a lock that only a signal interrupts; so an unused signal
carries the stop there. If there is none, as on Windows, the process is ended after a timeout.

NOTE [A stop while it is judged]
What was seen is judged inside the program, while its objects live. A stop from another thread that arrived there would
end the judging, and its findings would be lost: it waits until that is over.

NOTE [What outlives the interpreter]
What a daemon thread refers to is never freed. C++ extensions of a CUDA build complain at exit of each of their objects
that is left, so the thread that waits for the end must not refer to the run.
"""

import concurrent.futures.thread
import opcode
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, get_ident, main_thread
from time import monotonic, sleep
from types import FrameType
from typing import Any, Self

from gradinspect.own_threads import start_thread
from gradinspect.recording.frames import RUNNERS
from gradinspect.runner.delays import delay_s, without_delay
from gradinspect.runner.ending import end_process
from gradinspect.runner.endless_waits import endless_wait_of
from gradinspect.runner.quiet_stops import leave_out_stops
from gradinspect.runner.waiting_handler import handler_of, set_handler

_ENTERS_HANDLER = opcode.opmap["PUSH_EXC_INFO"]
_SIGNAL = signal.SIGRTMAX - 2 if hasattr(signal, "SIGRTMAX") else getattr(signal, "SIGURG", 0)  # an unused signal
_send: Any = getattr(signal, "pthread_kill", None)
_THREAD_RUNNERS = (threading.__file__, concurrent.futures.thread.__file__)  # they end a thread or reuse it cleanly
_TEST_RUNNERS = ("_pytest", "pluggy")
PATIENCE_S = 120.0  # for the program's own cleanup
PATIENCE_WITH_THREADS_S = 20.0  # the main thread may wait forever for one that was stopped
MOST_ENDLESS_S = 2.0  # NOTE [Waits that cannot end]
_GLANCE_S = 0.5
_PAUSE_S = 0.05
PATIENCE_AT_EXIT_S = 5.0  # for threads that the rest of the program would have ended


class Stopper:
    """Stops one program, once. Use it as a context manager, in the main thread, around the program."""

    def __init__(self) -> None:
        """Set up for a program that runs in the main thread."""
        self.is_stopping = False
        self.deliver: Callable[[], None] | None = None  # what was recorded, from a process that does not end by itself
        self._tracers: dict[int, _FrameTracer] = {}
        self._has_ended = False
        self._until_end = Lock()  # held until the end; an Event calls builtins that the program may have replaced
        self._until_end.acquire()
        self._last_word = Lock()  # of who ends the process: NOTE [Who ends the process]
        self._main = main_thread()
        self._signal_handler: Any = None
        self._is_withheld = self._was_withheld = False

    def __enter__(self) -> Self:
        """Let other threads reach the main thread. NOTE [A stop from another thread]."""
        if _SIGNAL > 0 and _send is not None and get_ident() == self._main.ident:
            self._signal_handler = set_handler(_SIGNAL, self._stop_main)
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop watching."""
        self.ended()
        if self._signal_handler is not None:
            set_handler(_SIGNAL, self._signal_handler)

    def stop(self, program_frame: FrameType | None) -> None:
        """Raise the stop here.

        Args:
            program_frame: The innermost frame of the program, torch's included.

        Raises:
            SystemExit: Always, and exactly this type, because threads end silently only on it. In a test: `Stopped`.
        """
        is_first = not self.is_stopping
        self._begin()
        self._watch(program_frame)
        if is_first:
            in_main = get_ident() == self._main.ident
            if not in_main:
                self._wake_main()
            patience = PATIENCE_S if in_main else PATIENCE_WITH_THREADS_S
            start_thread(self._end_in_time, patience)  # the program may lack what a Thread needs
        raise make_stop(is_in_test=_is_in_test(program_frame))

    @contextmanager
    def withheld(self) -> Iterator[None]:
        """Let a stop from another thread wait until this is over. NOTE [A stop while it is judged]."""
        self._is_withheld = True
        try:
            yield
        finally:
            self._is_withheld = False
        if self._was_withheld:
            self._wake_main()

    def stop_after(self, seconds: float, may_stop: Callable[[], bool] = lambda: True) -> None:
        """Stop the main thread in a while, wherever it is then. NOTE [A stop from another thread].

        Args:
            seconds: By the clock on the wall, without those for which a busy machine lets it wait.
            may_stop: Asked then, in a thread of ours.
        """
        start_thread(self._stop_after, seconds, may_stop)

    def _stop_after(self, seconds: float, may_stop: Callable[[], bool]) -> None:
        begun, delayed = monotonic(), delay_s()
        while (left := seconds - without_delay(monotonic() - begun, delay_s() - delayed)) > 0:
            if self._until_end.acquire(timeout=max(left, _PAUSE_S)):
                self._until_end.release()
                return
        if not self.is_stopping and may_stop():
            self._begin()
            self._wake_main()
            self._end_in_time(PATIENCE_S)

    def stop_from_outside(self, exit_code: int, patience_s: float) -> None:
        """Stop the main thread wherever it is, from a thread that is not the program's.

        Args:
            exit_code: Of a process that does not end by itself, as in a collective that no other rank joins.
            patience_s: How long it has to end by itself.
        """
        if self._has_ended or self.is_stopping:
            return
        self._begin()
        self._wake_main()
        start_thread(self._end_in_time, patience_s, exit_code)

    def _begin(self) -> None:
        if not self.is_stopping:
            self.is_stopping = True
            leave_out_stops(is_stop)

    def _wake_main(self) -> None:
        """Let the main thread raise the stop, unless the program has taken the signal, as it may take all."""
        is_ours = self._signal_handler is not None and handler_of(_SIGNAL) == self._stop_main
        if is_ours and self._main.ident is not None:
            _send(self._main.ident, _SIGNAL)

    def ended(self) -> None:
        """Mark the program as ended, and stop watching the main thread."""
        if not self._has_ended:
            while not self._last_word.acquire(
                timeout=threading.TIMEOUT_MAX
            ):  # another thread ends the process meanwhile
                pass
            self._has_ended = True
            self._until_end.release()
        tracer = self._tracers.pop(self._main.ident or 0, None)
        if tracer is not None:
            tracer.end()

    def _end_in_time(self, patience_s: float, exit_code: int = 0) -> None:
        """End a process that does not end by itself: run its atexit handlers and exit.

        Runs in a daemon thread, whose frame is never freed: NOTE [What outlives the interpreter].

        NOTE [Who ends the process]
        Of several processes that wait for each other, one that is ended here wakes the others: their main threads go on
        just when their own time is up. So either the main thread ends its program, or this thread ends the process with
        what was recorded; the one that comes second waits.
        """
        has_ended = self._ends_within(patience_s)
        if not has_ended and not self._last_word.acquire(blocking=False):
            has_ended = self._until_end.acquire()
        if has_ended:
            self._until_end.release()  # for others who wait
            while self._main.is_alive():  # until the interpreter begins to wait for other threads
                sleep(_PAUSE_S)  # not `join`, which needs what a program may have deleted, such as sys.excepthook
            sleep(PATIENCE_AT_EXIT_S)
        end_process(exit_code, self.deliver)

    def _ends_within(self, patience_s: float) -> bool:
        """Wait for the end of the program; not long for one that nothing can end. NOTE [Waits that cannot end]."""
        until = monotonic() + patience_s
        wait, since = None, monotonic()
        while (left := until - monotonic()) > 0:
            if self._until_end.acquire(timeout=min(left, _GLANCE_S)):
                return True
            latest = endless_wait_of(self._main.ident)
            if latest is None or latest != wait:
                wait, since = latest, monotonic()
            elif monotonic() - since > MOST_ENDLESS_S:
                return False
        return False

    def _stop_main(self, _signal: int, frame: FrameType | None) -> None:
        """Raise a stop from another thread, unless it has already arrived, as through `Future.result()`."""
        if self._has_ended or not self.is_stopping:
            return
        if self._is_withheld:
            self._was_withheld = True
            return
        self._watch(frame)
        if not is_stop(sys.exc_info()[1]):
            raise make_stop(is_in_test=_is_in_test(frame))

    def _watch(self, frame: FrameType | None) -> None:
        thread = get_ident()
        if thread not in self._tracers:
            self._tracers[thread] = _FrameTracer(is_in_test=_is_in_test(frame))
        self._tracers[thread].begin(_stack(frame, in_main=thread == self._main.ident))


class _FrameTracer:
    """Traces frames of one thread, from that thread. NOTE [A tracer of the program]."""

    def __init__(self, *, is_in_test: bool) -> None:
        self._tracer: Any = sys.gettrace()
        self._profiler = sys.getprofile()
        self._is_in_test = is_in_test
        self._frames: dict[FrameType, Any] = {}  # and the function that traced it before
        self._on_call = self._called  # one object, since each access to a method makes another

    def begin(self, frames: list[FrameType]) -> None:
        self._frames = {frame: frame.f_trace for frame in frames if frame not in self._frames} | self._frames
        self._arm()
        sys.setprofile(self._rearm)

    def end(self) -> None:
        sys.setprofile(self._profiler)
        sys.settrace(self._tracer)
        for frame, tracer in self._frames.items():
            frame.f_trace = tracer
        self._frames.clear()

    def _arm(self) -> None:
        sys.settrace(self._on_call)
        for frame in self._frames:
            frame.f_trace = self._on_event

    def _called(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Do not trace new frames, unless the program does."""
        return None if self._tracer is None else self._tracer(frame, event, argument)

    def _on_event(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line" and frame in self._frames and not _handles_stop(frame):
            raise make_stop(is_in_test=self._is_in_test)
        tracer = self._frames.get(frame)
        if tracer is not None:
            self._frames[frame] = tracer(frame, event, argument)
        return self._on_event

    def _rearm(self, _frame: FrameType, _event: str, _argument: Any) -> None:
        if sys.gettrace() in (None, self._tracer):
            self._arm()


class Stopped(KeyboardInterrupt):
    """Ends a test runner, which prints its message. NOTE [A stop inside a test runner]."""

    __module__ = "gradinspect"


def make_stop(*, is_in_test: bool = False) -> BaseException:
    """Make the exception that ends a program, marked to distinguish it from the program's own."""
    stop: Any = Stopped("the requested backward call is recorded") if is_in_test else SystemExit(0)
    stop.is_early_end = True
    return stop  # type: ignore[no-any-return]


def is_stop(error: BaseException | None) -> bool:
    """Return whether an exception is a stop, or was raised while one was being handled."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if getattr(error, "is_early_end", False):
            return True
        seen.add(id(error))
        error = error.__context__
    return False


def _handles_stop(frame: FrameType) -> bool:
    """Return whether a frame is in a handler, a `finally:` or the exit of a `with`, or about to enter one."""
    return is_stop(sys.exc_info()[1]) or frame.f_code.co_code[frame.f_lasti] == _ENTERS_HANDLER


def _stack(frame: FrameType | None, *, in_main: bool) -> list[FrameType]:
    """List the program's frames, without those of its runner or of a thread's runner, which catch the stop."""
    frames: list[FrameType] = []
    while frame is not None and frame.f_code.co_filename not in RUNNERS and not _runs_tests(frame):
        if in_main or frame.f_code.co_filename not in _THREAD_RUNNERS:
            frames.append(frame)
        frame = frame.f_back
    return frames


def _is_in_test(frame: FrameType | None) -> bool:
    while frame is not None and not _runs_tests(frame):
        frame = frame.f_back
    return frame is not None


def _runs_tests(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).partition(".")[0] in _TEST_RUNNERS
