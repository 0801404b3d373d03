"""Where a callable runs: the device of the models that it calls, or the one that the user names."""

import functools
from collections.abc import Iterator
from contextlib import suppress
from types import FunctionType, MethodType, ModuleType
from typing import Any

import torch
from torch import nn

from gradinspect.errors import GradInspectError
from gradinspect.recording.names.names import members_of
from gradinspect.recording.names.variables import isinstance_safely

_NESTING = 4  # a partial of a method of an object that holds a model


def device_of(called: object) -> torch.device | None:
    """Return the device that a callable takes its inputs on: that of the first parameter of its first model.

    A model may be spread over several devices. Its inputs enter at its first part, which is registered first.
    """
    for model in models_of(called):
        for tensor in _tensors_of(model):
            return tensor.device
    return None


def move(called: object, device: str) -> torch.device:
    """Move the models of a callable to a device.

    Args:
        called: A module, or what calls one.
        device: As the user has written it.

    Raises:
        GradInspectError: It is not there, or there is nothing to move to it.
    """
    target = existing_device(device)
    for model in models_of(called):
        if target.type != "meta" and any(tensor.is_meta for tensor in _tensors_of(model)):
            raise GradInspectError(
                f"'--device {device}' cannot move a model on 'meta', which has no values.", "Give --device meta."
            )
        model.to(target)
    return target


def existing_device(name: str) -> torch.device:
    """Return a device of this machine by its name.

    Raises:
        GradInspectError: It is not there.
    """
    with suppress(Exception):  # torch was built without it, has no driver for it, or does not know its name
        device = torch.device(name)
        torch.empty(1, device=device).fill_(0)
        if device.index is None or 0 <= device.index < _number_of(device.type):
            return device
    raise GradInspectError(f"There is no device '{name}'.", _hint())


def models_of(called: object, nesting: int = _NESTING) -> Iterator[nn.Module]:
    """Yield the models that a callable holds: itself, its object, its arguments, the variables that it names."""
    if isinstance_safely(called, (nn.Module,)):
        yield called
    elif nesting:
        for part in _held_by(called):
            yield from models_of(part, nesting - 1)


def _tensors_of(model: nn.Module) -> list[torch.Tensor]:
    """List the parameters of a model, then its buffers: one that stayed where it was made says less."""
    members = sorted(members_of(model), key=lambda member: member.kind != "parameter")
    return [member.tensor for member in members if isinstance_safely(member.tensor, (torch.Tensor,))]


def _held_by(called: object) -> list[Any]:
    """List what a callable refers to, without running any of its code."""
    if type(called) is MethodType:
        return [called.__self__, called.__func__]
    if type(called) is functools.partial:
        return [called.func, *called.args, *called.keywords.values()]
    if type(called) is FunctionType:
        return [*_cells(called), *_named_by(called)]
    if isinstance_safely(called, (ModuleType,)):
        return []  # a function that names one uses a few of its names: torch has thousands, some of which warn
    try:
        return [part for part in object.__getattribute__(called, "__dict__").values() if not isinstance(part, type)]
    except Exception:  # it has none
        return []


def _named_by(function: FunctionType) -> Iterator[object]:
    """Yield the global variables that a function names, and of modules among them those that it names too."""
    names = function.__code__.co_names
    for name in names:
        value = function.__globals__.get(name)
        yield value
        if type(value) is ModuleType:
            yield from (vars(value)[part] for part in names if part in vars(value))


def _cells(function: FunctionType) -> Iterator[object]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # the variable has no value yet
            continue


def _number_of(kind: str) -> int:
    """Count the devices of a kind; what does not count them has one."""
    if kind in {"cpu", "meta"}:
        return 1
    count = getattr(torch.get_device_module(kind), "device_count", None)
    return int(count()) if callable(count) else 1


def _hint() -> str:
    """Name the devices that are there."""
    names = ["cpu"]
    if torch.accelerator.is_available() and (found := torch.accelerator.current_accelerator()) is not None:
        names += [f"{found.type}:{index}" for index in range(torch.accelerator.device_count())]
    return f"Give one of: {', '.join(names)}."
