"""End the user's program early, in good order, from inside one of its calls.

NOTE [A stop that nobody can swallow]
The stop is a SystemExit, so threads end on it silently and `except Exception` lets it pass. A bare `except:` does not.
Whoever swallows it has a frame on the stack of the moment it was raised. So a trace function watches exactly those
frames: a line event in one of them while no exception is being handled means that the stop was swallowed, and raises it
again, outside the `try` that took it. `finally:` blocks, `with` exits and handlers handle an exception while they run,
so they run undisturbed; `__del__` methods and new calls have frames of their own, so they do too.
CPython switches tracing off when a trace function raises; a profile function, told of the next call or return, switches
it on again.
"""

import ctypes
import opcode
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from gradinspect.capture.frames import RUNNERS

_ENTERS_HANDLER = opcode.opmap["PUSH_EXC_INFO"]
PATIENCE_S = 120.0  # for the program's own clean-up
PATIENCE_WITH_THREADS_S = 5.0  # a main thread that waits for a thread which has ended may wait forever


class Stopper:
    """Stops one program, once."""

    def __init__(self, finish: Callable[[], None]) -> None:
        """Set up for a program that runs in the main thread.

        Args:
            finish: Ends the process. Called from another thread, only if the program does not end by itself.
        """
        self.is_stopping = False
        self._finish = finish
        self._frames: set[FrameType] = set()
        self._ended = threading.Event()
        self._main = threading.main_thread().ident

    def stop(self, program_frame: FrameType | None) -> None:
        """Raise the stop here.

        Args:
            program_frame: The innermost frame of the program, torch's included.

        Raises:
            SystemExit: Always, and of exactly this type: a thread ends silently on no other.
        """
        is_first = not self.is_stopping
        self.is_stopping = True
        in_main = threading.get_ident() == self._main
        if in_main:
            self._frames = set(_stack(program_frame))
            self._arm()
            sys.setprofile(self._rearm)
        if is_first:
            self._begin_to_wait(in_main=in_main)
        raise SystemExit(0)

    def ended(self) -> None:
        """Say that the program has ended: nothing is watched any longer."""
        if self.is_stopping:
            sys.setprofile(None)
            sys.settrace(None)
            for frame in self._frames:
                frame.f_trace = None
            self._frames.clear()
        self._ended.set()

    def _arm(self) -> None:
        sys.settrace(_ignore_call)
        for frame in self._frames:
            frame.f_trace = self._on_line

    def _on_line(self, frame: FrameType, event: str, _argument: Any) -> Any:
        if event == "line" and not _handles_exception(frame) and not self._ended.is_set():
            raise SystemExit(0)
        return self._on_line

    def _rearm(self, _frame: FrameType, _event: str, _argument: Any) -> None:
        if sys.gettrace() is None and not self._ended.is_set():
            self._arm()

    def _begin_to_wait(self, *, in_main: bool) -> None:
        if not in_main:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._main or 0), ctypes.py_object(SystemExit))
        patience = PATIENCE_S if in_main else PATIENCE_WITH_THREADS_S
        threading.Thread(target=self._wait, args=(patience,), daemon=True).start()

    def _wait(self, patience_s: float) -> None:
        deadline = time.monotonic() + patience_s
        while not self._ended.wait(timeout=max(0.0, deadline - time.monotonic())):
            if time.monotonic() >= deadline:
                self._finish()
                return


def _handles_exception(frame: FrameType) -> bool:
    """Tell whether a frame is in a handler, a `finally:` or the exit of a `with`, or about to enter one."""
    return sys.exc_info()[1] is not None or frame.f_code.co_code[frame.f_lasti] == _ENTERS_HANDLER


def _ignore_call(_frame: FrameType, _event: str, _argument: Any) -> None:
    """Trace no new frame."""


def _stack(frame: FrameType | None) -> list[FrameType]:
    """List the program's frames; those of whoever runs it catch the stop on purpose."""
    frames = []
    while frame is not None and frame.f_code.co_filename not in RUNNERS:
        frames.append(frame)
        frame = frame.f_back
    return frames
