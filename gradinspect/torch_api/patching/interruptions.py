"""Exceptions that the program sends into the middle of our code: a time limit of its own must not end there.

A signal handler runs between two instructions of whatever code the main thread is in, and what it raises goes on from
there; another thread can raise an exception in ours in the same way. Both are meant for the program, as if they had
come one instruction later.
"""

import sys
from collections.abc import Iterator
from functools import partial
from inspect import getattr_static
from signal import getsignal, valid_signals
from threading import get_ident, main_thread
from types import CodeType, FunctionType, MethodType, TracebackType
from typing import Any

from gradinspect.torch_api.patching.classes import is_one_of

_PACKAGE = __name__.partition(".")[0]
_NEVER_SENT = frozenset((*sys.stdlib_module_names, "builtins", "torch", "numpy", _PACKAGE))  # their errors are raised


def pass_on_interruption(error: Exception) -> None:
    """Raise an exception that is not the result of what our code did, but was sent to the program meanwhile.

    Args:
        error: What has just been caught.
    """
    if _is_of_handler(error) or _is_sent(error):
        raise error


def _is_of_handler(error: Exception) -> bool:
    """Return whether a signal handler of the program raised it."""
    if get_ident() != main_thread().ident:  # the only one that runs handlers
        return False
    handlers = {code for number in valid_signals() if (code := code_of(getsignal(number))) is not None}
    return any(traceback.tb_frame.f_code in handlers for traceback in _tracebacks(error))


def _is_sent(error: Exception) -> bool:
    """Return whether another thread raised it: in a frame of ours, of a class that no code called from there knows."""
    *_, last = (None, *_tracebacks(error))
    if last is None or not str(last.tb_frame.f_globals.get("__name__")).startswith(f"{_PACKAGE}."):
        return False
    return str(type.__getattribute__(type(error), "__module__")).partition(".")[0] not in _NEVER_SENT


def _tracebacks(error: Exception) -> Iterator[TracebackType]:
    one = error.__traceback__
    while one is not None:
        yield one
        one = one.tb_next


def code_of(handler: Any) -> CodeType | None:
    """Return the code that runs when a handler is called; None for what is not written in Python."""
    while is_one_of(handler, (partial, MethodType)):
        handler = handler.func if type(handler) is partial else handler.__func__
    if type(handler) is not FunctionType and callable(handler):
        handler = getattr_static(type(handler), "__call__", None)
    return handler.__code__ if type(handler) is FunctionType else None
