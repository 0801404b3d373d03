"""Notice calls of torch's methods for which it has no hook."""

import functools
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import FrameType
from typing import Any

import torch

from gradinspect.torch_api.dynamo import passed_by
from gradinspect.torch_api.patching.patches import Patch

Note = Callable[[Any, tuple[Any, ...], dict[str, Any], Any, FrameType], None]


def noticing(holder: type, name: str, note: Note, turn: AbstractContextManager[object] | None = None) -> Patch:
    """Report each call of a method that has returned.

    Args:
        holder: The class.
        name: The method.
        note: Called with `self`, the other arguments, the result, and the caller's frame. Its errors are dropped.
        turn: A lock that is held meanwhile.
    """

    def report(made: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        try:
            with turn or nullcontext():
                note(made, args, kwargs, result, sys._getframe(2))
        except Exception:
            return

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        # torch.compile reads the whole closure of what it inlines, and knows no lock: so there is none in it.
        @passed_by
        @functools.wraps(original)
        def noticed(self: Any, *args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling():  # this must come first: anything before it would be traced
                return original(self, *args, **kwargs)
            try:
                result = original(self, *args, **kwargs)
            except BaseException as error:  # NOTE [No frame of ours in a traceback] in `record.recorder`
                error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
                raise
            report(self, args, kwargs, result)
            return result

        return noticed

    return Patch(holder, name, make)
