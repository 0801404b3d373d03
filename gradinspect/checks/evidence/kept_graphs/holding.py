"""What a variable of the program holds when backward is called: advice on a tuple differs from that on a tensor."""

from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any

import torch
from torch import nn

from gradinspect.checks.facts.backward_calls import Held, Holds, HoldsOf
from gradinspect.recording.frames import user_frames
from gradinspect.recording.names.names import named_modules
from gradinspect.recording.names.variables import isinstance_safely, local_variables
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.transparency.own_errors import PassOver
from gradinspect.torch_api.patching.classes import is_one_of

MAX_PARTS = 1_000  # of a model, whose names are looked at


def holding(frame: FrameType | None, recorder: Recorder) -> HoldsOf:
    """Return a function that looks up a variable, or an attribute such as `self.h`, as visible from a frame.

    Args:
        frame: The calling frame.
        recorder: Has the modules whose attributes `self.h` may mean, besides those of the `self` of a frame.
    """

    def holds(name: str) -> Held | None:
        modules = [module() for module in recorder.modules]
        values = _values(name, frame, modules, recorder.errors.leave_out)
        found = (Held(kind, here) for here, value in values if (kind := _kind(value)) is not None)
        return next(found, None)

    return holds


def _values(
    name: str, frame: FrameType | None, modules: Iterable[nn.Module | None], leave_out: PassOver
) -> Iterator[tuple[str, Any]]:
    owner, dot, attribute = name.rpartition(".")
    spaces = [space for user in user_frames(frame) for space in (local_variables(user), user.f_globals)]
    if not dot:
        yield from ((name, space[name]) for space in spaces if name in space)
        return
    owners = [(owner, space[owner]) for space in spaces if owner in space]
    owners += [] if owner != "self" else _owners(spaces, leave_out)
    for here, one in (*owners, *((owner, module) for module in modules)):
        attributes = getattr(one, "__dict__", {})
        for found in (attributes, attributes.get("_buffers") or {}):
            if attribute in found:
                yield f"{here}.{attribute}", found[attribute]


def _owners(spaces: Iterable[dict[str, Any]], leave_out: PassOver) -> list[tuple[str, nn.Module]]:
    """List the modules that variables hold, with their parts: `model.encoder`."""
    found = []
    for space in spaces:
        for variable, value in list(space.items()):
            if isinstance_safely(value, (nn.Module,)) and variable != "self":
                named = list(named_modules(value))
                found += [(f"{variable}.{path}" if path else variable, module) for path, module in named[:MAX_PARTS]]
                if len(named) > MAX_PARTS:
                    why = f"after the first {MAX_PARTS:,} of a model"
                    leave_out("module that may hold a state", why, len(named) - MAX_PARTS)
    return [(name, module) for name, module in found if all(part.isidentifier() for part in name.split("."))]


def _kind(value: Any) -> Holds | None:
    if isinstance_safely(value, (torch.Tensor,)):
        return "tensor"
    if not is_one_of(value, (tuple, list, dict)):
        return "nested" if isinstance_safely(value, (tuple, list, dict)) else None
    items = list(value.values() if type(value) is dict else value)
    if not items or not all(isinstance_safely(one, (torch.Tensor,)) for one in items):
        return "nested"
    return "dict" if type(value) is dict else "list" if type(value) is list else "tuple"
