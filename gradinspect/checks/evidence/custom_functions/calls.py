"""The arguments of the first call of each custom autograd.Function, copied before its forward sees them."""

from contextlib import ExitStack
from math import inf
from typing import Any, NamedTuple, Self

import torch

from gradinspect.checks.evidence.custom_functions.kept_arguments import (
    CannotBeKeptError,
    GoneError,
    copied,
    given_again,
    kept,
)
from gradinspect.checks.evidence.custom_functions.shrinking import shrunk
from gradinspect.torch_api.modules import autograd_function_patch
from gradinspect.torch_api.patching.classes import module_of
from gradinspect.torch_api.patching.interruptions import pass_on_interruption
from gradinspect.torch_api.patching.originals import ops, without_grad
from gradinspect.torch_api.patching.patches import patched
from gradinspect.torch_api.tensors import is_transforming, plain_tensors_only


class CustomCall(NamedTuple):
    """A call of `apply`."""

    function: Any  # the class
    args: tuple[Any, ...]  # `kept`, until the call is taken
    kwargs: dict[str, Any]


class CustomCalls:
    """Stores one call of each Function while it is active. Use it as a context manager.

    `torch.autograd.Function.apply` is replaced, so a Function that overrides `apply` itself is not seen. Arguments that
    cannot be kept, as inside a torch.func transform, are passed over: a later call may have others.
    """

    def __init__(self, most_elements: float = inf) -> None:
        """Start empty; of calls on more elements, a small part is stored."""
        self._most_elements = most_elements
        self.too_large: dict[str, str] = {}  # qualified name of a Function -> which limit an argument is beyond
        self._calls: dict[str, CustomCall] = {}
        self._patched = ExitStack()

    def __enter__(self) -> Self:
        """Replace `apply`."""
        self._patched.enter_context(patched(autograd_function_patch(self._recording)))
        return self

    def __exit__(self, *_error: object) -> None:
        """Restore the original."""
        self._patched.close()

    def _recording(self, original: Any) -> Any:
        def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
            if not torch.compiler.is_compiling():
                self._note(cls, args, kwargs)
            return original.__get__(None, cls)(*args, **kwargs)

        return classmethod(apply)

    def take(self, name: str) -> CustomCall | None:
        """Remove and return the call of a Function, given its qualified name; None also if an argument is gone."""
        call = self._calls.pop(name, None)
        try:
            return call and CustomCall(call.function, given_again(call.args), given_again(call.kwargs))
        except GoneError:
            return None

    def _note(self, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        name = f"{cls.__module__}.{cls.__qualname__}"
        if name in self._calls or module_of(cls).startswith("torch.") or is_transforming():
            return
        try:
            with plain_tensors_only(), without_grad():
                size = sum(ops.numel(value) for value in args if isinstance(value, torch.Tensor))
                given = args if size <= self._most_elements else shrunk(args)
                self._calls[name] = CustomCall(cls, tuple(map(_kept, given)), kept(kwargs))
                self.too_large.pop(name, None)
        except CannotBeKeptError as error:
            self.too_large[name] = str(error)
        except Exception as error:
            pass_on_interruption(error)


def _kept(value: Any) -> Any:
    """Keep an argument; how large those are that are tensors themselves is known to the caller."""
    return copied(value) if isinstance(value, torch.Tensor) else kept(value)
