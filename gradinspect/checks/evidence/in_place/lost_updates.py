"""Steps in half precision that change few of the elements that they are to change.

NOTE [Lost updates]
bfloat16 has three digits: what a step adds to an element is lost if it is less than half the distance to the next
number. During a step a copy of a parameter is kept, and compared behind it. A warm-up begins with a small learning
rate, so the steps count with which it was largest. An optimizer of the program's own may keep the rest, and add it
later; those of torch do not.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from weakref import ReferenceType

import torch
from torch.optim import Optimizer

from gradinspect.checks.evidence.training.gradient_use import gradient_of, held_by
from gradinspect.checks.evidence.training.optimizers import SeenOptimizer
from gradinspect.checks.facts.training import UnmovedParameters
from gradinspect.graph import Frame
from gradinspect.recording.values.magnitudes import UNREADABLE
from gradinspect.torch_api.devices.graph_capture import is_capturing
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.classes import module_of, number_of
from gradinspect.torch_api.patching.originals import ops
from gradinspect.torch_api.weak import HiddenRef

LEAST_STEPS = 3
MOST_STEPS = 24  # of one optimizer
MOST_PARAMETERS = 8
MOST_ELEMENTS = 1 << 16  # of one
LOST = 0.9  # of the elements that have a gradient
_HALVES = (torch.bfloat16, torch.float16)


@dataclass
class LostUpdates:
    """What the steps of an optimizer have changed, with the largest of its learning rates."""

    seen: SeenOptimizer
    tensors: list[ReferenceType[torch.Tensor]] = field(default_factory=list)
    counts: list[torch.Tensor] = field(default_factory=list)  # of each step: elements lost, and those with a gradient
    rate: float = 0.0
    num_looked: int = 0

    def totals(self) -> tuple[int, int]:
        """Return how many elements were lost, and how many had a gradient."""
        with unobserved():
            lost, every = ops.unbind(ops.sum(ops.stack(self.counts), 0))
            return int(ops.item(lost)), int(ops.item(every))


@dataclass
class LostUpdateLog:
    """Compares small parameters before and after a step. NOTE [Lost updates]."""

    _seen: dict[int, LostUpdates] = field(default_factory=dict)  # by the id of the record of an optimizer
    _before: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = field(default_factory=list)

    def before_step(self, optimizer: Optimizer, seen: SeenOptimizer) -> None:
        """Copy what a step is about to change."""
        self._before = []
        some = [one for one in held_by(optimizer) if _is_looked_at(one)][:MOST_PARAMETERS]
        if not some or seen.was_compiled or is_capturing() or not module_of(type(optimizer)).startswith("torch.optim."):
            return
        known = self._seen.setdefault(id(seen), LostUpdates(seen))
        rates = [one for group in optimizer.param_groups if (one := number_of(group.get("lr"))) is not None]
        rate = max(rates, default=0)
        if known.num_looked >= MOST_STEPS or rate == 0 or rate < known.rate:
            return
        if rate > known.rate:
            known.rate, known.counts = rate, []
        known.num_looked += 1
        known.tensors = [HiddenRef(one) for one in some]
        try:
            with unobserved():
                self._before = [
                    (one, ops.clone(ops.detach(one)), ops.ne(gradient, 0))
                    for one in some
                    if (gradient := gradient_of(one)) is not None
                ]
        except UNREADABLE:
            self._before = []

    def after_step(self, seen: SeenOptimizer) -> None:
        """Count the elements that have a gradient and are the same."""
        before, self._before = self._before, []
        if not before:
            return
        try:
            with unobserved():
                counts = [
                    ops.stack([ops.sum(ops.logical_and(ops.eq(ops.detach(now), then), asked)), ops.sum(asked)])
                    for now, then, asked in before
                ]
                self._seen[id(seen)].counts.append(ops.sum(ops.stack(counts), 0))
        except UNREADABLE:
            return

    def found(self) -> Iterator[LostUpdates]:
        """Yield those of which hardly an element changes."""
        for one in self._seen.values():
            if len(one.counts) >= LEAST_STEPS:
                lost, every = one.totals()
                if every and lost >= LOST * every:
                    yield one


def living(one: LostUpdates) -> Sequence[torch.Tensor]:
    """List the parameters that are there still."""
    return [tensor for ref in one.tensors if (tensor := ref()) is not None]


def lost_fact(
    one: LostUpdates, names: Sequence[str], backward: int | None, frame: Callable[[int | None], Frame | None]
) -> UnmovedParameters:
    """Record what the steps of an optimizer have not changed.

    Args:
        one: What was counted.
        names: Of its parameters.
        backward: The frame of the call that left their gradients.
        frame: Returns the record of a frame.
    """
    optimizer, seen = one.seen.optimizer(), one.seen
    lost, every = one.totals()
    return UnmovedParameters(
        kind="rounded", names=tuple(dict.fromkeys(name or "a parameter" for name in names)),
        num_steps=len(one.counts), optimizer=seen.name, method="" if optimizer is None else type(optimizer).__name__,
        dtype=str(living(one)[0].dtype).removeprefix("torch."), num_lost=lost, num_elements=every, rate=one.rate,
        created=frame(seen.created), backward=frame(backward), step=frame(seen.step),
    )  # fmt: skip


def _is_looked_at(tensor: torch.Tensor) -> bool:
    return tensor.dtype in _HALVES and ops.numel(tensor) <= MOST_ELEMENTS and gradient_of(tensor) is not None
