"""Find the line that calls an operator, past the handlers of the program that hand the operator on.

NOTE [Handlers that hand on]
torch calls the `__torch_function__` of a mode, or of a class of tensors, in place of a torch function. One that counts,
logs or converts ends in `return func(*args, **kwargs)`, which is then the program's innermost line for everything that
is computed. The line that says what is computed is the one outside: it is where the frames of the program begin. What
a handler computes itself is called by its own line, and keeps that.
Source: torch/overrides.py, torch 2.13.
"""

from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any

from gradinspect.recording.frames import HANDLER, is_runner, is_user_file
from gradinspect.recording.names.variables import local_variables
from gradinspect.torch_api.dynamo import uncompiled


@uncompiled
def outside_handlers(frame: FrameType | None, func: Any = None) -> FrameType | None:
    """Return the frame that a handler of the program was called for; the given one if none hands on what runs.

    Args:
        frame: The innermost frame.
        func: The torch function that runs, if it is known; one that is written in Python is found by its frame.
    """
    start = frame
    running: set[CodeType] = set()
    known = [func] if func is not None else []
    while frame is not None and not is_runner(frame.f_code.co_filename):
        if frame.f_code.co_name == HANDLER:
            given = _given(frame)
            if not is_user_file(frame.f_code.co_filename):
                known += given  # a mode of ours, or the handler that all tensors have
            elif any(_code_of(one) in running or any(one is other for other in known) for one in given):
                start = frame.f_back
        running.add(frame.f_code)
        frame = frame.f_back
    return start


def _given(frame: FrameType) -> list[Any]:
    """Return what may be the function that a handler was called for: a static one has it first, others second."""
    names, values = frame.f_code.co_varnames[: frame.f_code.co_argcount][:2], local_variables(frame)
    return [values[name] for name in names if name in values and callable(values[name])]


def _code_of(func: Any) -> CodeType | None:
    function = func.__func__ if type(func) is MethodType else func
    return function.__code__ if type(function) is FunctionType else None
