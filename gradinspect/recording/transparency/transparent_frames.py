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
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

from gradinspect.recording.frames import RUNNERS
from gradinspect.torch_api.modes import HANDLE_TORCH_FUNCTION

_OURS = os.path.join(Path(__file__).parent.parent.parent, "")  # noqa: PTH118  # a prefix that ends with the separator
_local = threading.local()
# Where Python places a warning whose level is higher than the stack: a script may warn of its caller, and has none.
_OUTSIDE = ("<sys>", 0, vars(sys)) if sys.version_info >= (3, 13) else ("sys", 1, vars(sys))
_NO_LINE = -1  # what Python says of code without line numbers


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


def _outward(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
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
            right = _right_place(message, sys._getframe(1))
            if right is None:
                show(message)
                return
            file, line, variables = right
            warnings.warn_explicit(
                message.message, message.category, file, line, variables.get("__name__") or "<unknown>",
                variables.setdefault("__warningregistry__", {}), source=message.source,
            )  # fmt: skip
        except Warning as error:  # a filter turns them into errors; NOTE [No frame of ours in a traceback]
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            raise
        finally:
            _local.is_placing = False

    return show_in_place


def _right_place(message: Any, innermost: FrameType) -> tuple[str, int, dict[str, Any]] | None:
    """Return the file, line and globals that a warning belongs to; None if it has them, or is not on this stack."""
    place = (message.filename, message.lineno)
    stack = enumerate(_outward(innermost))
    found = next((one for one in stack if (one[1].f_code.co_filename, _line_of(one[1])) == place), None)
    if found is None:
        return None
    level, frame = found
    right = next(islice(frames_without_us(innermost), level, None), None)
    if right is frame:
        return None
    _forget(message, frame)
    return (right.f_code.co_filename, _line_of(right), right.f_globals) if right else _OUTSIDE


def _line_of(frame: FrameType) -> int:
    """Return the line of a frame, as a warning names it."""
    line: int | None = frame.f_lineno
    return _NO_LINE if line is None else line


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
    return [id(frame) in kept for frame in _outward(innermost)][::-1]
