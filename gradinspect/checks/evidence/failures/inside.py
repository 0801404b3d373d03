"""What the frames of torch say about an error: the layer that was given something wrong, and a tensor in two groups.

What comes in: the frames below the statement that failed. What goes out: names as the program's variables have them.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from gradinspect.checks.evidence.rates.scheduler_sources import made_scheduler
from gradinspect.checks.facts.failures import MisfitState, SharedParameter
from gradinspect.graph import Frame
from gradinspect.recording.frames import source_line
from gradinspect.recording.names.names import named_modules
from gradinspect.recording.names.variables import isinstance_safely, own_variables, variables_from
from gradinspect.torch_api.modules import own_parameters
from gradinspect.torch_api.patching.originals import ops

ARGUMENT = "the "  # what a layer was given: "the input of net.3"
MAX_SHARED = 3  # that are named
MAX_LISTS = 2  # of modules


class Layer(NamedTuple):
    """The innermost module whose forward was running."""

    name: str  # "net.3"
    module: nn.Module
    given: list[tuple[str, torch.Tensor]]


def failed_layer(deeper: Sequence[FrameType], named: Mapping[str, Any]) -> Layer | None:
    """Return the layer in which an error was raised; None if that is no part of a module which the statement names.

    Args:
        deeper: The frames of torch, outermost first.
        named: What the statement names.
    """
    for frame in reversed(deeper):
        inside = own_variables(frame)
        module = inside.get("self")
        if frame.f_code.co_name == "forward" and isinstance_safely(module, (nn.Module,)):
            name = next(_paths(module, named), None)
            return None if name is None else Layer(name, module, list(_given(name, frame)))
    return None


def constructed_class(deeper: Sequence[FrameType]) -> str:
    """Return the module of torch that a statement makes, given the frames of torch; "" if it makes none."""
    for frame in deeper[:1]:
        module = own_variables(frame).get("self")
        if frame.f_code.co_name == "__init__" and isinstance_safely(module, (nn.Module,)):
            return type(module).__name__
    return ""


def _paths(module: nn.Module, named: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of a module within those that a statement names."""
    for start, value in named.items():
        if isinstance_safely(value, (nn.Module,)) and value is not module:
            yield from (f"{start}.{path}" for path, inside in named_modules(value) if inside is module)


def _given(name: str, frame: FrameType) -> Iterator[tuple[str, torch.Tensor]]:
    inside = own_variables(frame)
    code = frame.f_code
    for argument in code.co_varnames[1 : code.co_argcount]:
        if isinstance_safely(inside.get(argument), (torch.Tensor,)):
            yield f"{ARGUMENT}{argument} of {name}", inside[argument]


def shared_parameters(deeper: Sequence[FrameType], program: FrameType) -> Iterator[SharedParameter]:
    """Yield the parameters that a new group of an optimizer has in common with the groups before it.

    Args:
        deeper: The frames of torch, outermost first.
        program: The frame of the statement that failed, whose variables give names.
    """
    inside = next((own_variables(one) for one in deeper if one.f_code.co_name == "add_param_group"), {})
    optimizer, group = inside.get("self"), inside.get("param_group")
    if not isinstance_safely(optimizer, (Optimizer,)) or type(group) is not dict:
        return
    before = [_members(one) for one in vars(optimizer).get("param_groups", ())]
    names = _names(program)
    for parameter in _members(group):
        earlier = next((place for place, one in enumerate(before) if any(parameter is other for other in one)), None)
        if earlier is not None:
            yield SharedParameter(names=tuple(names.get(id(parameter), ())), groups=(earlier, len(before)))


def misfit_state(deeper: Sequence[FrameType], program: FrameType) -> MisfitState | None:
    """Return the first parameter of the optimizer that was stepping, whose state has another shape than it.

    Args:
        deeper: The frames of torch, outermost first.
        program: The frame of the statement that failed, whose variables give names.
    """
    stepping = next((own_variables(one).get("self") for one in deeper if one.f_code.co_name == "step"), None)
    if not isinstance_safely(stepping, (Optimizer,)):
        return None
    states = vars(stepping).get("state", {})
    for parameter in (one for group in vars(stepping).get("param_groups", ()) for one in _members(group)):
        for kept in _kept_of(states, parameter):
            if kept.shape != parameter.shape:
                name = next(iter(_names(program).get(id(parameter), ())), "")
                return MisfitState(name=name, shape=tuple(parameter.shape), state=tuple(kept.shape))
    return None


def made_schedule(deeper: Sequence[FrameType], folder: Path) -> Frame | None:
    """Return the line that made the scheduler which was stepping; None if several lines of the program make one."""
    stepping = next((own_variables(one).get("self") for one in deeper if one.f_code.co_name == "step"), None)
    made = made_scheduler(type(stepping).__name__) if isinstance_safely(stepping, (LRScheduler,)) else None
    return None if made is None else source_line(made.file, made.call.lineno, folder)


def _kept_of(states: Mapping[Any, Any], parameter: Any) -> Iterator[torch.Tensor]:
    """Yield the averages that an optimizer keeps for a parameter: its count of steps has no dimension."""
    kept = next((own for key, own in states.items() if key is parameter), None)
    for one in kept.values() if type(kept) is dict else ():
        if isinstance_safely(one, (torch.Tensor,)) and ops.dim(one):
            yield one


def _members(group: Mapping[str, Any]) -> list[Any]:
    held = group.get("params")
    return held if type(held) is list else []


def _names(program: FrameType) -> dict[int, dict[str, None]]:
    """Return all names of each parameter in the modules of variables: a tied one has several."""
    found: dict[int, dict[str, None]] = {}
    seen = set[int]()
    for variable, value in variables_from(program, outermost_first=True):
        if not isinstance_safely(value, (nn.Module,)) or id(value) in seen:
            continue
        seen.add(id(value))
        for path, module in named_modules(value):
            for own, parameter in own_parameters(module).items():
                found.setdefault(id(parameter), {})[".".join(filter(None, (variable, path, own)))] = None
    return found


def unregistered_lists(named: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the attributes that hold modules in a list or dict, which registers none: their names and classes."""
    for start, value in named.items():
        if isinstance_safely(value, (nn.Module,)):
            for name, held in vars(value).items():
                inside = list(held.values()) if type(held) is dict else held
                is_list = type(inside) is list and not name.startswith("_") and bool(inside)
                if is_list and all(isinstance_safely(one, (nn.Module,)) for one in inside):
                    yield f"{start}.{name}", "ModuleDict" if type(held) is dict else "ModuleList"
