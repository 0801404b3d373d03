"""Saved attributes that are not tensors: numbers, sizes, dtypes, options."""

import math

import torch

from gradinspect.graph import SavedKind, SavedValue, Scalar

_TYPE_KINDS: dict[type, SavedKind] = {
    torch.dtype: "dtype",
    torch.layout: "layout",
    torch.memory_format: "memory_format",
    torch.device: "device",
}


def saved_value(name: str, value: object, index: int | None = None) -> SavedValue:
    """Record a node's attribute that is not a tensor."""
    if isinstance(value, list | tuple):
        return SavedValue(name=name, index=index, kind="tuple", value=tuple(plain_scalar(item) for item in value))
    return SavedValue(name=name, index=index, kind=kind_of(value), value=plain_scalar(value))


def kind_of(value: object) -> SavedKind:
    """Return the kind of a value that is not a tensor."""
    if value is None:
        return "none"
    if isinstance(value, bool | torch.SymBool):
        return "bool"
    if isinstance(value, int | torch.SymInt):
        return "int"
    if isinstance(value, float | torch.SymFloat):
        return "float"
    if isinstance(value, complex):
        return "complex"
    if isinstance(value, str):
        return "str"
    return _TYPE_KINDS.get(type(value), "object")


def plain_scalar(value: object) -> Scalar:
    """Convert a value to what a record may hold. Runs no user code: an object becomes the name of its class.

    torch returns some saved dims as unsigned, so that -1 becomes 18446744073709551615; this restores -1.
    Source: tools/autograd/gen_autograd_functions.py GETTER_BODY_INT64_T, torch 2.13.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return _plain_int(int(value))
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, str):
        return str(value)
    if isinstance(value, complex | torch.SymInt | torch.SymFloat | torch.SymBool):
        return str(value)
    if type(value) in _TYPE_KINDS:
        return str(value).removeprefix("torch.")
    if isinstance(value, list | tuple):
        return f"({', '.join(str(plain_scalar(item)) for item in value)})"
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _plain_int(value: int) -> int | str:
    if 2**63 <= value < 2**64:
        return value - 2**64
    return value if -(2**63) <= value < 2**63 else str(value)
