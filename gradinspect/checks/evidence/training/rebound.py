"""Leaves that a program made anew under the name of one that an optimizer holds.

NOTE [Rebound on purpose]
A program may restart from another point with another optimizer, or keep two leaves of one shape. So a leaf counts only
if no optimizer holds it and nobody reads its gradient, if a variable of the same name held a leaf of the same shape
that an optimizer has, and if backward has reached the new one since steps of that, but not the old one.
"""

from collections.abc import Callable, Iterator, Sequence

import torch

from gradinspect.checks.evidence.training.gradient_use import GradientUse, UsedParameter, held_by
from gradinspect.checks.evidence.training.optimizers import SeenOptimizer
from gradinspect.checks.evidence.training.registrations import Registrations
from gradinspect.checks.evidence.training.unheld import Unheld

LEAST_STEPS = 2  # between the last backward that reached the old one, and one that reached the new one


def rebound(
    gradients: GradientUse,
    optimizers: Sequence[SeenOptimizer],
    registrations: Registrations,
    made_at: Callable[[torch.Tensor], int | None],
) -> Iterator[Unheld]:
    """Yield the leaves that took the place of one that an optimizer holds. NOTE [Rebound on purpose].

    Args:
        gradients: What backward has reached.
        optimizers: All of them.
        registrations: When parameters became part of their modules.
        made_at: The frame that made a tensor; it may be gone when this is reported.
    """
    held = {key for one in optimizers for key in one.holds()}
    for seen in optimizers:
        optimizer = seen.optimizer()
        for old in () if optimizer is None or not seen.num_steps else held_by(optimizer):
            known = [] if registrations.first_of(old) is not None else gradients.of([old])
            for before in known:
                new = next((one for one in gradients.parameters() if _replaces(one, before, old, held)), None)
                tensor = None if new is None else new.tensor()
                if new is not None and tensor is not None and registrations.first_of(tensor) is None:
                    yield Unheld("rebound", new.name, new, made_at(tensor), seen)


def _replaces(one: UsedParameter, before: UsedParameter, old: torch.Tensor, held: set[int]) -> bool:
    tensor = one.tensor()
    if tensor is None or id(tensor) in held or one.read or one.is_input or one.name != before.name or not one.name:
        return False
    if not tensor.requires_grad or (tensor.shape, tensor.dtype) != (old.shape, old.dtype):
        return False
    return before.reached > 0 and one.steps_before - before.steps_before >= LEAST_STEPS
