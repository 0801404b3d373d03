"""Parameters that have a gradient and do not change, whatever the reason.

NOTE [Unmoved parameters]
At each backward call that is looked at, a parameter is reduced to a few numbers: the sum of the bits of its elements,
and their norm. No copy is kept. Where two such calls have the same numbers, and an optimizer that holds the parameter
has stepped in between with its gradient, the step has changed nothing, or something has undone it. One that has
changed is not looked at again, so this costs something in the first two calls only. What has not changed in
LEAST_STEPS steps is told apart by its gradient: as backward left it, and as the step found it. All of it is reduced on
its device, and fetched with the figures of the next backward call.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Literal, TypeAlias
from weakref import ReferenceType

import torch
from torch.optim import Optimizer

from gradinspect.checks.evidence.training.gradient_use import gradient_of, held_by
from gradinspect.checks.evidence.training.optimizers import SeenOptimizer
from gradinspect.checks.facts.training import UnmovedKind, UnmovedParameters
from gradinspect.graph import Frame
from gradinspect.recording.values.magnitudes import (
    UNREADABLE,
    PendingFigures,
    bits_of,
    combined,
    elements_of,
    pending_magnitudes,
    why_unread,
    wide_dtype,
)
from gradinspect.torch_api.devices.graph_capture import is_capturing
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.classes import module_of, number_of
from gradinspect.torch_api.patching.originals import ops
from gradinspect.torch_api.weak import HiddenRef

LEAST_STEPS = 3  # a warm-up may begin with the learning rate 0
_LIMB = 1 << 16  # what float32 holds exactly, on devices that have no float64
Leaves = Sequence[tuple[torch.Tensor, str]]  # with their names
_Question: TypeAlias = Literal["arrived", "used", "moved"]


@dataclass
class Unmoved:
    """A parameter that has not changed until now."""

    key: int  # the parameter's id
    tensor: ReferenceType[torch.Tensor]
    name: str
    backward: int | None  # the frame
    dtype: torch.dtype  # as all that is said of it, also after it is gone
    before: list[float] = field(default_factory=list)  # its figures in the first call: see _figures
    has_stepped: bool = False  # since the last call
    num_calls: int = 0  # that found the same figures as the first
    num_steps: int = 0  # that changed nothing, or were undone
    left: PendingFigures | None = None  # the gradient that the last backward left
    waiting: list[tuple[_Question, PendingFigures]] = field(default_factory=list)  # to be fetched in the next call
    arrived: float = 0.0  # the largest of those that the last backward before a step left
    used: float = 0.0  # that of those that a step found
    is_undone: bool = False  # a step has changed it
    rate: float | None = None
    optimizer: SeenOptimizer | None = None
    method: str = ""  # the class of the optimizer
    is_own: bool = False  # it is the program's

    @property
    def kind(self) -> UnmovedKind:
        """Why it does not change, as far as that is known."""
        if not self.used:
            return "cleared" if self.arrived else "zero"
        return "undone" if self.is_undone else "lost" if self.is_too_little else "idle"

    @property
    def is_too_little(self) -> bool:
        """Whether the learning rate, or what it makes of the gradient, is lost beside the values."""
        return self._is_lost(min(1.0, self.used))

    @property
    def is_rate_too_little(self) -> bool:
        """Whether the learning rate is lost beside the values, whatever the gradient."""
        return self._is_lost(1.0)

    @property
    def largest(self) -> float:
        """The largest absolute value."""
        *_, low, high = self.before
        return max(abs(low), abs(high))

    @property
    def is_constant(self) -> bool:
        """Whether all its elements are the same."""
        *_, low, high = self.before
        return low == high

    def take(self, question: _Question, pending: PendingFigures, rows: Sequence[Sequence[float]]) -> None:
        """Note what was fetched of its last step."""
        if question == "moved":
            self.is_undone = self.is_undone or list(rows[0]) != self.before
            return
        figures = combined(pending, rows)
        largest = inf if figures.num_nonfinite else figures.largest
        if question == "arrived":
            self.arrived = max(self.arrived, largest)
        else:
            self.used = max(self.used, largest)

    def _is_lost(self, gradient: float) -> bool:
        if self.rate is None or not self.dtype.is_floating_point:
            return False
        return bool(self.rate * gradient < torch.finfo(self.dtype).eps * self.largest)


@dataclass
class UnmovedLog:
    """Compares parameters from one backward call to the next. The log calls it with what it sees."""

    _open: dict[int, Unmoved] = field(default_factory=dict)  # by the parameter's id
    _moved: set[int] = field(default_factory=set)  # ids
    _compared: list[tuple[Unmoved, PendingFigures]] = field(default_factory=list)

    def begin(self, leaves: Leaves, backward: int | None) -> None:
        """Reduce what has not changed yet to figures, before a backward call."""
        self._compared = []
        if is_capturing():  # NOTE [Captured kernels]
            return
        for tensor, name in leaves:
            one = self._known_or_new(tensor, name, backward)
            figures = None if one is None else _figures(tensor)
            if one is not None and figures is not None:
                self._compared.append((one, figures))

    @property
    def pending(self) -> list[PendingFigures]:
        """What is to be fetched."""
        return [one for unmoved, figures in self._compared for one in (figures, *(some for _, some in unmoved.waiting))]

    def settle(self, rows: Sequence[Sequence[Sequence[float]]]) -> None:
        """Compare what was fetched; nothing if the device has failed."""
        compared, self._compared = self._compared, []
        answers = iter(rows)
        for one, _ in compared if rows else ():
            (row,) = next(answers)
            figures = list(row)
            waiting, one.waiting = [(*asked, next(answers)) for asked in one.waiting], []
            before, one.before = one.before or figures, figures
            if before != figures:
                self._moved.add(one.key)
                self._open.pop(one.key, None)
                continue
            for question, pending, answer in waiting:
                one.take(question, pending, answer)
            one.num_calls += 1
            one.num_steps += one.has_stepped
            one.has_stepped = False
            if one.num_steps:
                one.left = _measured_gradient(one)

    def unobserved(self) -> None:
        """Forget what the last backward left: another one, which is only counted, has changed it."""
        for one in self._open.values():
            one.left = None

    def before_step(self, optimizer: Optimizer, seen: SeenOptimizer) -> None:
        """Look at the gradients that a step finds for parameters that the last ones have not changed."""
        held = self._held(optimizer)
        rates = _rates(optimizer) if held else {}
        kind = type(optimizer)
        for tensor, one in held:
            rate = rates.get(id(tensor))
            if gradient_of(tensor) is None or rate == 0 or seen.was_compiled:
                continue
            one.has_stepped, one.optimizer, one.rate = True, seen, rate
            one.method, one.is_own = kind.__name__, not module_of(kind).startswith("torch.")
            if one.num_steps:
                asked: tuple[tuple[_Question, PendingFigures | None], ...] = (
                    ("arrived", one.left),
                    ("used", _measured_gradient(one)),
                )
                one.waiting += [(question, figures) for question, figures in asked if figures is not None]

    def after_step(self, optimizer: Optimizer) -> None:
        """Look whether the step has changed them, so that something else must have undone that."""
        for tensor, one in self._held(optimizer):
            figures = _figures(tensor) if one.num_steps and not one.is_undone and one.has_stepped else None
            if figures is not None:
                one.waiting.append(("moved", figures))

    def waits(self) -> str | None:
        """Say what the next steps may show."""
        some = (one for one in self._open.values() if 0 < one.num_steps < LEAST_STEPS)
        few = next((one for one in some if one.arrived or one.waiting), None)
        return None if few is None else f"{few.name or 'a parameter'} had a gradient and had not changed"

    def is_same(self, tensor: torch.Tensor) -> bool:
        """Return whether a parameter has not changed in any of several calls."""
        one = self._open.get(id(tensor))
        return one is not None and one.tensor() is tensor and one.num_calls > LEAST_STEPS

    def found(self) -> Iterator[Unmoved]:
        """Yield those that have not changed, in each step that could have changed them.

        A single value, or many that are all the same, may be held at a bound. A gradient that is zero, or next to
        nothing as that of a bias before a batch norm, is no mistake of the optimizer's, unless nothing else of it
        learns either.
        """
        last = [one for one in self._open.values() if one.num_steps >= LEAST_STEPS and one.optimizer is not None]
        for one in last:
            if one.arrived < inf and one.used < inf and not self._is_meant(one):
                yield one

    def _is_meant(self, one: Unmoved) -> bool:
        is_small = one.kind == "zero" or (one.kind == "lost" and not one.is_rate_too_little)
        if is_small and one.optimizer is not None:
            return not self._moved.isdisjoint(one.optimizer.holds())
        return one.kind == "undone" and one.is_constant

    def _known_or_new(self, tensor: torch.Tensor, name: str, backward: int | None) -> Unmoved | None:
        if id(tensor) in self._moved or not ops.numel(tensor) or why_unread(tensor) is not None:
            return None
        known = self._open.get(id(tensor))
        if known is None or known.tensor() is not tensor:
            known = self._open[id(tensor)] = Unmoved(id(tensor), HiddenRef(tensor), name, backward, tensor.dtype)
        return known

    def _held(self, optimizer: Optimizer) -> list[tuple[torch.Tensor, Unmoved]]:
        pairs = ((tensor, self._open.get(id(tensor))) for tensor in held_by(optimizer)) if self._open else ()
        return [(tensor, one) for tensor, one in pairs if one is not None and one.tensor() is tensor]


def unmoved_fact(
    some: Sequence[Unmoved],
    frame: Callable[[int | None], Frame | None],
    written: Callable[[torch.Tensor | None], int | None],
) -> UnmovedParameters:
    """Record parameters of one optimizer that do not change for one reason.

    Args:
        some: They.
        frame: Returns the record of a frame.
        written: Returns the frame of the last write to a tensor.
    """
    first, seen = some[0], some[0].optimizer
    return UnmovedParameters(
        kind=first.kind, names=tuple(dict.fromkeys(one.name or "a parameter" for one in some)),
        optimizer="" if seen is None else seen.name, method=first.method,
        dtype=str(first.dtype).removeprefix("torch."),
        num_steps=min(one.num_steps for one in some), gradient=max(one.arrived for one in some),
        value=max(one.largest for one in some), rate=first.rate,
        is_own=first.is_own,
        created=frame(None if seen is None else seen.created), backward=frame(first.backward),
        step=frame(None if seen is None else seen.step),
        written=frame(written(first.tensor())) if first.kind == "undone" else None,
    )  # fmt: skip


def _figures(tensor: torch.Tensor) -> PendingFigures | None:
    """Reduce a tensor to the sum of the bits of its elements, in four parts, their norm, the least and the greatest."""
    try:
        with unobserved():
            elements = elements_of(tensor)
            parts = ops.view_as_real(ops.resolve_conj(elements)) if ops.is_complex(elements) else elements
            wide = wide_dtype(parts)
            total = ops.sum(bits_of(parts), dtype=torch.int64)
            limbs = [ops.remainder(ops.bitwise_right_shift(total, 16 * place), _LIMB) for place in range(4)]
            values = ops.to(parts, wide) if parts.dtype not in (torch.float32, wide) else parts
            figures = (*limbs, ops.vector_norm(values), ops.amin(values), ops.amax(values))
            return PendingFigures(ops.numel(tensor), [ops.stack([ops.to(one, wide) for one in figures])])
    except UNREADABLE:
        return None


def _measured_gradient(one: Unmoved) -> PendingFigures | None:
    """Measure the gradient of a parameter; None if it has none that can be read."""
    tensor = one.tensor()
    gradient = None if tensor is None else gradient_of(tensor)
    if gradient is None or why_unread(gradient) is not None:
        return None
    try:
        with unobserved():
            return pending_magnitudes(gradient)
    except UNREADABLE:
        return None


def _rates(optimizer: Optimizer) -> dict[int, float | None]:
    """Return the learning rate of each parameter, by its id; None if it is kept on a device."""
    rates: dict[int, float | None] = {}
    for group in optimizer.param_groups:
        known = number_of(group.get("lr"))
        for one in group["params"]:
            rates.setdefault(id(one), known)
    return rates
