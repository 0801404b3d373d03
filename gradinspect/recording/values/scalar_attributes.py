"""Saved attributes that are not tensors: numbers, sizes, dtypes, options."""

from math import isfinite
from typing import Any, cast

import torch

from gradinspect.graph import SavedKind, SavedValue, Scalar
from gradinspect.recording.names.variables import elements_of, isinstance_safely

_KINDS: tuple[tuple[tuple[type, ...], SavedKind], ...] = (
    ((type(None),), "none"),
    ((bool, torch.SymBool), "bool"),
    ((int, torch.SymInt), "int"),
    ((float, torch.SymFloat), "float"),
    ((complex,), "complex"),
    ((str,), "str"),
    ((torch.dtype,), "dtype"),
    ((torch.layout,), "layout"),
    ((torch.memory_format,), "memory_format"),
    ((torch.device,), "device"),
)
_OF_TORCH = (torch.dtype, torch.layout, torch.memory_format, torch.device)


def saved_value(name: str, value: object, index: int | None = None) -> SavedValue:
    """Record a node's attribute that is not a tensor."""
    if isinstance_safely(value, (list, tuple)):
        items = tuple([plain_scalar(item) for item in elements_of(value)])
        return SavedValue(name=name, index=index, kind="tuple", value=items)
    return SavedValue(name=name, index=index, kind=kind_of(value), value=plain_scalar(value))


def kind_of(value: object) -> SavedKind:
    """Return the kind of a value that is not a tensor. Runs no user code."""
    kind = type(value)
    for kinds, name in _KINDS:
        if issubclass(kind, kinds):
            return name
    return "object"


def plain_scalar(value: Any) -> Scalar:
    """Convert a value to what a record may hold. Runs no user code: an object becomes the name of its class.

    torch returns some saved dims as unsigned, so that -1 becomes 18446744073709551615; this restores -1.
    Source: tools/autograd/gen_autograd_functions.py GETTER_BODY_INT64_T, torch 2.13.
    """
    kind = type(value)
    if value is None or issubclass(kind, (bool, int, float, str, complex)):
        return _plain_literal(value, kind)
    if issubclass(kind, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return str(value)
    if issubclass(kind, _OF_TORCH):
        return str(value).removeprefix("torch.")
    if issubclass(kind, (list, tuple)):
        return f"({', '.join([str(plain_scalar(item)) for item in elements_of(value)])})"
    return f"{kind.__module__}.{kind.__qualname__}"


def _plain_literal(value: Any, kind: type) -> Scalar:
    """Read a number or text as its base class does: a subclass may run code of the user."""
    if value is None or kind is bool:
        return cast("Scalar", value)
    if issubclass(kind, int):
        return _plain_int(int.__int__(value))
    if issubclass(kind, float):
        number = float.__float__(value)
        return number if isfinite(number) else str(number)
    return str.__str__(value) if issubclass(kind, str) else str(complex.__complex__(value))


def _plain_int(value: int) -> int | str:
    if 2**63 <= value < 2**64:
        return value - 2**64
    if -(2**63) <= value < 2**63:
        return value
    try:
        return str(value)
    except ValueError:  # more digits than Python writes, which is a limit that programs may lower
        return f"an integer of {value.bit_length()} bits"
