"""The stack as it would be without us, for the lines of warnings and for anomaly mode.

NOTE [Frames added by us]
Called through our function mode, a torch function written in C has one more frame below it: ours. One written in Python
has three more: it checks for overrides, torch passes the call to our mode, and we call it again. So our frame is
removed, with torch's `handle_torch_function` and the first of two calls of the same function. The frames outside the
one that runs the program are also ours.
"""

import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from gradinspect.recording.frames import RUNNERS
from gradinspect.torch_api.modes import HANDLE_TORCH_FUNCTION

_OURS = os.path.join(Path(__file__).parent.parent.parent, "")  # noqa: PTH118  # a prefix that ends with the separator
_local = threading.local()


def frames_without_us(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield the frames from this one outward that would exist without us."""
    inner: FrameType | None = None
    while frame is not None and frame.f_code.co_filename not in RUNNERS:
        if not frame.f_code.co_filename.startswith(_OURS):
            inner = frame
            yield frame
            frame = frame.f_back
            continue
        frame = frame.f_back
        if frame is not None and frame.f_code is HANDLE_TORCH_FUNCTION:
            frame = frame.f_back
            if frame is not None and inner is not None and frame.f_code is inner.f_code:
                frame = frame.f_back


def warnings_without_us(show: Callable[[Any], None]) -> Callable[[Any], None]:
    """Make a `warnings._showwarnmsg` that reports the line a warning would have without us.

    The stack level is recovered, and counted without our frames. Then the warning is issued again for that line, so
    that the filters and the registry of its module apply.
    """

    def show_in_place(message: Any) -> None:
        if getattr(_local, "is_placing", False):  # by the outermost of our layers, or again
            show(message)
            return
        _local.is_placing = True
        try:
            right = _right_frame(message, sys._getframe(1))
            if right is None:
                show(message)
                return
            warnings.warn_explicit(
                message.message, message.category, right.f_code.co_filename, right.f_lineno,
                right.f_globals.get("__name__") or "<unknown>",
                right.f_globals.setdefault("__warningregistry__", {}), source=message.source,
            )  # fmt: skip
        except Warning as error:  # a filter turns them into errors; NOTE [No frame of ours in a traceback]
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            raise
        finally:
            _local.is_placing = False

    return show_in_place


def _right_frame(message: Any, innermost: FrameType) -> FrameType | None:
    """Return the frame that a warning belongs to; None if it is already right, or not on this stack."""
    level, frame = 0, innermost
    while (frame.f_code.co_filename, frame.f_lineno) != (message.filename, message.lineno):
        if frame.f_back is None:
            return None
        level, frame = level + 1, frame.f_back
    right = None
    for number, right in enumerate(frames_without_us(innermost)):  # noqa: B007  # the last one, if there are fewer
        if number == level:
            break
    if right is None or right is frame:
        return None
    _forget(message, frame)
    return right


def _forget(message: Any, frame: FrameType) -> None:
    """Remove a warning from the registry of shown warnings."""
    text, registry = str(message.message), frame.f_globals.get("__warningregistry__", {})
    for line in (message.lineno, 0):
        registry.pop((text, message.category, line), None)
    warnings.onceregistry.pop((text, message.category), None)  # type: ignore[attr-defined]


def stack_without_us(original: Callable[[], list[str]]) -> Callable[[], list[str]]:
    """Make a `format_stack` that leaves out the frames added by us."""

    def format_stack() -> list[str]:
        entries = original()
        is_kept = _kept_from(sys._getframe(0))
        if len(entries) != len(is_kept):  # not a stack
            return entries
        return [entry for entry, kept in zip(entries, is_kept, strict=True) if kept]

    return format_stack


def _kept_from(innermost: FrameType) -> list[bool]:
    """Return for each frame, outermost first, whether it would exist without us.

    Returns no frames: a frame in its own locals would keep everything on the stack alive.
    """
    kept = set(map(id, frames_without_us(innermost)))
    is_kept = []
    frame: FrameType | None = innermost
    while frame is not None:
        is_kept.append(id(frame) in kept)
        frame = frame.f_back
    return is_kept[::-1]
