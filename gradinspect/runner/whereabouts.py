"""Where a program is: its innermost line on a stack, and the function that this line has called."""

import os
from types import FrameType

from gradinspect.recording.frames import is_runner, is_user_file, line_at

_WRAPPERS = frozenset({"wrapper", "inner", "_fn", "decorate_context", "_call_impl", "_wrapped_call_impl", "__call__"})


def whereabouts(frame: FrameType | None) -> tuple[str, str]:
    """Return `train.py:12` and the name of the function it has called, "" for what is not known."""
    called = ""
    while frame is not None and not is_runner(frame.f_code.co_filename):
        if is_user_file(frame.f_code.co_filename):
            return f"{os.path.basename(frame.f_code.co_filename)}:{line_at(frame)}", called  # noqa: PTH119  # no objects
        called = frame.f_code.co_name if frame.f_code.co_name not in _WRAPPERS else called
        frame = frame.f_back
    return "", ""
