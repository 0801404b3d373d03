"""Parameters that are made anew for each backward call, as by a layer that is made in `forward`.

NOTE [Made anew]
A program may make a new model for each of several trainings, or a copy of the model for each task of meta-learning. So
a new parameter counts only if an optimizer that has stepped holds others that the same backward call reaches, if no
optimizer holds it, and if nobody has used the gradient of the one before it.

NOTE [Rebound on purpose]
A program may restart from another point with another optimizer, or keep two leaves of one shape. So a leaf counts only
if no optimizer holds it and nobody reads its gradient, if a variable of the same name held a leaf of the same shape
that an optimizer has, and if backward has reached the new one since steps of that, but not the old one.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import torch

from gradinspect.checks.evidence.training.gradient_use import GradientUse, UsedParameter, held_by
from gradinspect.checks.evidence.training.optimizers import SeenOptimizer
from gradinspect.checks.evidence.training.registrations import Registration, Registrations
from gradinspect.checks.evidence.training.unheld import Unheld
from gradinspect.torch_api.weak import HiddenRef

LEAST_TIMES = 3  # backward calls
LEAST_STEPS = 2  # between the last backward that reached the old one, and one that reached the new one


@dataclass
class _Line:
    """A line that makes parameters, and the backward calls that reach them."""

    optimizer: SeenOptimizer
    calls: set[int] = field(default_factory=set)
    parameters: list[UsedParameter] = field(default_factory=list)  # of the last call
    keys: set[int] = field(default_factory=set)  # their ids
    is_meant: bool = False  # to be new: somebody has read a gradient of them, or has stepped


@dataclass
class MadeAnew:
    """Notes the parameters that became part of a module since the last backward call. NOTE [Made anew]."""

    registrations: Registrations
    _order: int = 0  # of the last registration before the last backward call
    _lines: dict[int, _Line] = field(default_factory=dict)  # by their frames

    def begin(
        self, leaves: Sequence[tuple[torch.Tensor, str]], gradients: GradientUse, optimizers: Sequence[SeenOptimizer]
    ) -> None:
        """Look at what a backward call that is about to start will reach."""
        since, self._order = self._order, self.registrations.order
        if not optimizers or since == self._order:
            return
        for line in self._lines.values():
            line.is_meant |= any(one.read or one.step is not None for one in gradients.with_ids(line.keys))
        new = list(self._new(leaves, since))
        held = {key: one for one in optimizers for key in one.holds()}
        optimizer = next((held[id(leaf)] for leaf, _ in leaves if id(leaf) in held), None)
        if not new or optimizer is None or not optimizer.num_steps:
            return
        lines = {made.frame: self._line(made.frame, optimizer) for _, _, made in new if made.frame is not None}
        for line in lines.values():
            line.calls.add(gradients.num_backwards)
            line.parameters, line.keys = [], set()
        for leaf, name, made in new:
            if made.frame is not None:
                line = lines[made.frame]
                line.parameters.append(UsedParameter(HiddenRef(leaf), name, backward=gradients.backward))
                line.keys.add(id(leaf))
                line.is_meant |= id(leaf) in held

    def found(self) -> Iterator[Unheld]:
        """Yield those of which each of the last backward calls has reached new ones."""
        for frame, line in self._lines.items():
            if len(line.calls) >= LEAST_TIMES and not line.is_meant:
                yield from (Unheld("anew", "parameters", one, frame, line.optimizer) for one in line.parameters)

    def _line(self, frame: int, optimizer: SeenOptimizer) -> _Line:
        return self._lines.setdefault(frame, _Line(optimizer))

    def _new(
        self, leaves: Sequence[tuple[torch.Tensor, str]], since: int
    ) -> Iterator[tuple[torch.Tensor, str, Registration]]:
        for leaf, name in leaves:
            made = self.registrations.first_of(leaf)
            if made is not None and made.order > since:
                yield leaf, name, made


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
    named: dict[str, list[UsedParameter]] = {}
    for one in gradients.parameters():
        if one.name and not (one.read or one.is_input):
            named.setdefault(one.name, []).append(one)
    for seen in optimizers:
        optimizer = seen.optimizer()
        for old in () if optimizer is None or not seen.num_steps else held_by(optimizer):
            known = [] if registrations.first_of(old) is not None else gradients.of([old])
            for before in known:
                new = next((one for one in named.get(before.name, ()) if _replaces(one, before, old, held)), None)
                tensor = None if new is None else new.tensor()
                if new is not None and tensor is not None and registrations.first_of(tensor) is None:
                    yield Unheld("rebound", new.name, new, made_at(tensor), seen)


def _replaces(one: UsedParameter, before: UsedParameter, old: torch.Tensor, held: set[int]) -> bool:
    tensor = one.tensor()
    if tensor is None or id(tensor) in held:
        return False
    if not tensor.requires_grad or (tensor.shape, tensor.dtype) != (old.shape, old.dtype):
        return False
    return before.reached > 0 and one.steps_before - before.steps_before >= LEAST_STEPS
