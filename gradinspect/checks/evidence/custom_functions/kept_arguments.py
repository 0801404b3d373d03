"""The arguments of a call, kept until the program has ended without keeping anything of the program alive.

Tensors and containers are copied; what holds nothing is kept as it is, and every other object weakly. An argument may
hold much of a program: what a block has computed, or a cycle through the graph that the call makes.
"""

import sys
from collections.abc import Mapping
from types import FunctionType, MethodType
from typing import Any
from weakref import WeakMethod, ref

import torch

from gradinspect.checks.evidence.custom_functions.shrinking import WORKABLE
from gradinspect.torch_api.patching.classes import identities
from gradinspect.torch_api.patching.originals import ops

_HOLD_NOTHING = identities(
    bool, bytes, complex, float, int, range, str, type(None), type(...),
    torch.Size, torch.device, torch.dtype, torch.layout, torch.memory_format,
)  # fmt: skip
_COPIED = identities(tuple, list, set, frozenset, dict)
_MOST = 1_000  # elements of a container


class CannotBeKeptError(Exception):
    """An argument is too large, or of a class without weak references."""


class GoneError(Exception):
    """An argument was freed meanwhile."""


class _Weak:
    """Refers to an object of the program."""

    __slots__ = ("_reference",)

    def __init__(self, value: Any) -> None:
        self._reference: Any = WeakMethod(value) if type(value) is MethodType else ref(value)

    def object(self) -> Any:
        value = self._reference()
        if value is None:
            raise GoneError
        return value


def copied(tensor: torch.Tensor) -> torch.Tensor:
    """Copy a tensor, without its graph."""
    return ops.requires_grad_(ops.clone(ops.detach(tensor)), tensor.requires_grad)


def kept(value: Any) -> Any:
    """Return what stands for an argument until `given_again`.

    Raises:
        CannotBeKeptError: It is too large to copy.
        TypeError: Its class has no weak references.
    """
    kind = type(value)
    if issubclass(kind, torch.Tensor):
        if ops.numel(value) > WORKABLE:
            raise CannotBeKeptError(f"a tensor inside an argument has more than {WORKABLE:,} elements")
        return copied(value)
    if id(kind) in _HOLD_NOTHING or _is_plain_function(value) or _is_number_of_numpy(kind):
        return value
    if not _is_copied(kind):
        return _Weak(value)
    if (tuple.__len__(value) if issubclass(kind, tuple) else len(value)) > _MOST:
        raise CannotBeKeptError(f"a list, tuple, set or dict among its arguments has more than {_MOST:,} elements")
    return _each(kept, value)


def given_again(value: Any) -> Any:
    """Return the argument that was kept.

    Raises:
        GoneError: The program has freed it, or something in it.
    """
    if type(value) is _Weak:
        return value.object()
    return _each(given_again, value) if _is_copied(type(value)) and id(type(value)) not in _HOLD_NOTHING else value


def _is_copied(kind: type) -> bool:
    """Return whether a class is that of a container, or derived from a tuple, as one with named fields is."""
    return id(kind) in _COPIED or issubclass(kind, tuple)


def _each(function: Any, container: Any) -> Any:
    """Make a container of the same class, of what a function returns for each element; no code of the class runs."""
    kind = type(container)
    if issubclass(kind, tuple):
        return tuple.__new__(kind, map(function, tuple.__iter__(container)))
    if kind is dict:
        return {function(key): function(element) for key, element in container.items()}
    return kind(map(function, container))


def _is_plain_function(value: Any) -> bool:
    """Return whether a value is a function that holds nothing but its code."""
    if type(value) is not FunctionType:
        return False
    held: tuple[Mapping[str, Any] | tuple[Any, ...] | None, ...]
    held = value.__closure__, value.__defaults__, value.__kwdefaults__, value.__dict__
    return not any(held)


def _is_number_of_numpy(kind: type) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and issubclass(kind, numpy.generic) and not issubclass(kind, numpy.void | numpy.object_)
