"""Parameters that were frozen, and that an optimizer changes all the same, by a gradient that was left.

NOTE [Left gradients]
An optimizer updates each parameter that has a gradient, whether or not it requires grad. A gradient that backward left
before the parameter was frozen, or zeros in its place, moves it by momentum and weight decay. But a program may freeze
between backward and step, and may set gradients of its own: so the gradient must be one that an earlier step has used.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch.optim import Optimizer

from gradinspect.checks.evidence.training.gradient_use import (
    MAX_LOOKED_AT,
    GradientUse,
    UsedParameter,
    gradient_of,
    held_by,
)
from gradinspect.checks.evidence.training.optimizers import SeenOptimizer
from gradinspect.torch_api.devices.graph_capture import is_capturing
from gradinspect.torch_api.modes import Unobserved
from gradinspect.torch_api.patching.originals import ops


class Moved(NamedTuple):
    """A frozen parameter that a step has changed."""

    name: str
    frozen: int | None  # the frame
    step: int | None
    optimizer: str


@dataclass
class MovingFrozen:
    """Compares frozen parameters before and after a step. The log calls it with what it sees."""

    gradients: GradientUse
    frozen_at: dict[int, int | None]  # id of a leaf -> the frame that froze it
    found: dict[int, Moved] = field(default_factory=dict)  # by the parameter's id
    _used: dict[int, int] = field(
        default_factory=dict
    )  # id of a parameter -> that of the gradient that a step has used
    _before: dict[int, list[tuple[torch.Tensor, UsedParameter, torch.Tensor]]] = field(
        default_factory=dict
    )  # by the optimizer's id: those of several threads may step at a time

    def before_step(self, optimizer: Optimizer) -> None:
        """Copy a few of the frozen parameters that have a gradient left. NOTE [Left gradients]."""
        self._before.pop(id(optimizer), None)  # of a step that failed
        if is_capturing():  # NOTE [Captured kernels]
            return
        frozen = [one for one in held_by(optimizer) if not one.requires_grad and gradient_of(one) is not None]
        left = [one for one in self.gradients.of(frozen) if not one.is_fresh and self._is_left(one)]
        for one in left[:MAX_LOOKED_AT]:
            tensor = one.tensor()
            if tensor is not None and id(tensor) not in self.found:
                with Unobserved():
                    copied = ops.clone(ops.detach(tensor))
                self._before.setdefault(id(optimizer), []).append((tensor, one, copied))

    def after_step(self, optimizer: Optimizer, seen: SeenOptimizer) -> None:
        """Compare them, and note which gradients have been used."""
        for tensor, one, before in self._before.pop(id(optimizer), ()):
            with Unobserved():
                is_moved = not ops.equal(ops.detach(tensor), before)
            if is_moved:
                frozen = self.frozen_at.get(id(tensor))
                self.found[id(tensor)] = Moved(one.name, frozen, seen.step, seen.name)
        for tensor in held_by(optimizer):
            gradient = gradient_of(tensor)
            if gradient is not None:
                self._used[id(tensor)] = id(gradient)

    def _is_left(self, one: UsedParameter) -> bool:
        tensor = one.tensor()
        gradient = None if tensor is None else gradient_of(tensor)
        is_seen = self.gradients.blind_until <= one.stepped
        return is_seen and bool(one.reached) and self._used.get(id(tensor)) == id(gradient)
