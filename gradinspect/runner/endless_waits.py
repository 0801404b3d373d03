"""Recognize that a program which was stopped waits for a thread that the stop has ended.

NOTE [Waits that cannot end]
A queue that is full, or a condition, is waited for without a limit of time, and the thread that would have ended the
wait was stopped. If no thread is left but the one that waits, and those of ours, nothing ends it but a signal, and a
stopped program is not given much time for that. Only the waits of `threading` are recognized: at a lock that a program
acquires itself, or in a call into C, one cannot see whether it waits for long.
"""

import sys
import threading
from types import FrameType
from typing import Final

_WAITS: Final = (threading.Condition.wait.__code__, threading.Thread.join.__code__)
_OURS: Final = f"{__name__.partition('.')[0]}."
_frames = sys._current_frames


def endless_wait_of(thread: int | None) -> object | None:
    """Identify a wait of a thread that no other thread is left to end, equal as long as it lasts; None without one."""
    frames = _frames()
    frame = frames.pop(thread, None) if thread is not None else None
    if frame is None or not all(map(_is_ours, frames.values())):
        return None
    waiting = _unlimited_wait(frame)
    return None if waiting is None else (id(waiting), waiting.f_lasti)


def _unlimited_wait(frame: FrameType) -> FrameType | None:
    """Return the frame that waits without a limit: the innermost one, or the one that calls it for `join`."""
    inner: FrameType | None = frame
    while inner is not None and inner.f_code.co_filename == threading.__file__:
        if inner.f_code in _WAITS:
            return inner if inner.f_locals.get("timeout") is None else None
        inner = inner.f_back
    return None


def _is_ours(frame: FrameType) -> bool:
    """Return whether a thread is one of ours, by the function that it began with."""
    outermost = frame
    while outermost.f_back is not None:
        outermost = outermost.f_back
    return str(outermost.f_globals.get("__name__")).startswith(_OURS)
