"""Let the program's signal handlers wait while our own code runs: NOTE [Handlers that wait] in `waiting_handler`.

Python's own `signal.signal` and `signal.getsignal` stay where they are; the functions that they call, of `_signal`,
take and give the program's handlers.

NOTE [Whose code runs]
The innermost frame that is ours or the program's decides; torch and the standard library run for their caller. What a
function marked by `passed_by` calls is called for the program, but the function itself is ours.

NOTE [Where nothing can be raised]
What a dictionary with weak keys or values does as one of them is freed may be for one of ours, and Python drops its
errors. An exception at the end of an `__enter__` of torch leaves what was entered, as hooks of saved tensors, in place.
Without us, a signal almost never arrives there; but one that waits for our code would, where that is called by an
`__enter__`.

Before each operator under a dispatch mode, C++ asks Python for a rule of that mode. In some operators on fake
tensors, as `linear`, an exception there ends the process. So does one just before or after a `with` of the fake mode
in what it runs for an operator: C++ puts the mode back as it returns, and it is there already.
"""

import _weakrefset
import contextlib
import signal
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident, main_thread
from types import CodeType, FrameType
from typing import Any

import torch

from gradinspect.recording.frames import is_runner, is_user_file
from gradinspect.runner.waiting_handler import BELOW, WaitingHandler, handler_of, program_handler, set_handler
from gradinspect.torch_api.dynamo import is_passed_by
from gradinspect.torch_api.patching.interruptions import code_of
from gradinspect.torch_api.patching.patches import Patch, patched

_OURS = str(Path(__file__).parent.parent)
_SIGNALS = tuple(signal.valid_signals())
_FREEING = (weakref.__file__, _weakrefset.__file__)
_TORCH = str(Path(torch.__file__).parent)
_RULES = str(Path(torch.__file__).parent / "_library" / "simple_registry.py")
_FAKE = str(Path(torch.__file__).parent / "_subclasses")
_ENTERING = frozenset(("__enter__", "__exit__"))
_NOT_IN_A_FILE = "<string>"  # what Python writes for a class, also of ours


@contextmanager
def waiting_handlers() -> Iterator[None]:
    """Let the program's handlers wait while our code runs. Without effect in another thread than the main one."""
    if get_ident() != main_thread().ident:
        yield
        return
    with patched(Patch(BELOW, "signal", _registering), Patch(BELOW, "getsignal", _looked_up)):
        _Users.number += 1
        try:
            for number in _SIGNALS:
                _exchange(number, _waiting)
            yield
        finally:
            _Users.number -= 1
            for number in () if _Users.number else _SIGNALS:
                _exchange(number, program_handler)


class _Users:
    """The recordings for which handlers wait."""

    number = 0


def _exchange(number: int, change: Callable[[Any], Any]) -> None:
    handler = handler_of(number)
    changed = change(handler)
    if changed is not handler:
        set_handler(number, changed)


def _registering(original: Callable[..., Any]) -> Callable[..., Any]:
    def signal(signalnum: int, handler: Any, /) -> Any:
        try:
            return program_handler(original(signalnum, _waiting(handler)))
        except BaseException as error:  # NOTE [No frame of ours in a traceback] in `recording.recorder`
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            raise

    return signal


def _looked_up(original: Callable[..., Any]) -> Callable[..., Any]:
    def getsignal(signalnum: int, /) -> Any:
        try:
            return program_handler(original(signalnum))
        except BaseException as error:  # NOTE [No frame of ours in a traceback] in `recording.recorder`
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            raise

    return getsignal


def _waiting(handler: Any) -> Any:
    """Let a handler wait, unless it is ours, or that of asyncio, which does nothing.

    Python tells the loop of asyncio of each signal that is sent, also of one that is sent again.
    """
    if not callable(handler) or type(handler) is WaitingHandler:
        return handler
    code = code_of(handler)
    is_quiet = code is not None and (code.co_filename.startswith(_OURS) or code.co_name == "_sighandler_noop")
    return handler if is_quiet else WaitingHandler(handler, _is_ours)


def _is_ours(frame: FrameType | None) -> bool:
    """Return whether our own code runs. NOTE [Whose code runs]."""
    above: CodeType | None = None  # what the frame has called
    while frame is not None:
        code = frame.f_code
        if _can_raise_nothing(code):
            return True
        if code.co_filename.startswith(_OURS):
            if above is None or not _is_for_program(code, above):
                return True
        elif code.co_filename != _NOT_IN_A_FILE and is_user_file(code.co_filename):
            return False
        above, frame = code, frame.f_back
    return False


def _can_raise_nothing(code: CodeType) -> bool:
    """Return whether a handler should not be called there. NOTE [Where nothing can be raised]."""
    file = code.co_filename
    is_entering = code.co_name in _ENTERING and (file.startswith(_TORCH) or file == contextlib.__file__)
    return is_entering or file in (*_FREEING, _RULES) or file.startswith(_FAKE)


def _is_for_program(code: CodeType, above: CodeType) -> bool:
    """Return whether what a function of ours has called runs for the program."""
    if is_runner(code.co_filename):  # it calls modules of torch, where the program is such an expression
        return above.co_filename.startswith(_TORCH)
    return is_passed_by(code) or code is WaitingHandler.__call__.__code__
