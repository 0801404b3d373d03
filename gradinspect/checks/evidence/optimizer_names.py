"""The variable that holds an optimizer."""

import sys

from torch.optim.optimizer import Optimizer

from gradinspect.recording.frames import user_frames
from gradinspect.recording.names.variables import local_variables


def name_of_optimizer(optimizer: Optimizer) -> str:
    """Find the variable that holds an optimizer, in the frames that call its step."""
    for frame in user_frames(sys._getframe(2)):
        for space in (local_variables(frame), frame.f_globals):
            name = _name_in(space, optimizer)
            if name is not None:
                return name
    return type(optimizer).__name__


def _name_in(space: dict[str, object], optimizer: Optimizer) -> str | None:
    for name, value in list(space.items()):
        if value is optimizer:
            return name
    attributes = getattr(space.get("self"), "__dict__", {})
    return next((f"self.{name}" for name, value in list(attributes.items()) if value is optimizer), None)
