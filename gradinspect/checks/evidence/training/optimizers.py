"""When optimizers are made, step, and are stepped by schedulers, and with which learning rates."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, NamedTuple
from weakref import ReferenceType, ref

import torch
from torch.optim import Optimizer, lr_scheduler

from gradinspect.checks.evidence.optimizer_names import name_of_optimizer
from gradinspect.checks.evidence.rates.factors import RateFactors
from gradinspect.checks.evidence.training.gradient_use import gradient_of, held_by
from gradinspect.recording.names.instances import instances_of
from gradinspect.recording.recorder import Recorder
from gradinspect.torch_api.patching.classes import module_of, number_of
from gradinspect.torch_api.patching.originals import ops
from gradinspect.torch_api.tensors import version_of

SCHEDULER_FILE = lr_scheduler.__file__


LEAST_LATE = 3  # steps; a warm-up that is stepped with each batch begins with one step at 0
LEAST_KEPT_AT_ZERO = 20  # steps of a scheduler that leave the learning rate at 0 before another does not
ENOUGH_SCHEDULED = 5  # steps of a scheduler that leaves the learning rate at 0
MAX_RATIO = 0.2
SAME_RATIO = 0.01  # how far two may differ
# Shares of the largest learning rate that are next to nothing, and how many times the steps until then that must last.
SUNKEN = {1.01e-4: 2, 1.01e-3: 5}


LEAST_OUTLIVED = 2  # steps of a scheduler, as one may close a phase


@dataclass
class RateFalls:
    """How often in a row a scheduler, stepped after each step, has divided the learning rate by the same number."""

    rate: float | None = None  # after the scheduler's last step
    num_steps: int = 0  # of the optimizer, until then
    ratio: float = 0.0
    count: int = 0
    scheduled: int | None = None  # the frame of the scheduler's last step

    def note(self, rate: float | None, num_steps: int, frame: int | None) -> None:
        """Note the learning rate that a step of the scheduler has left."""
        before, since = self.rate, num_steps - self.num_steps
        ratio = rate / before if rate and before and since == 1 else 0.0
        is_same = abs(ratio - self.ratio) <= SAME_RATIO * ratio
        self.count = 0 if not 0 < ratio <= MAX_RATIO else self.count + 1 if is_same else 1
        self.rate, self.num_steps, self.ratio, self.scheduled = rate, num_steps, ratio, frame


class Sunk(NamedTuple):
    """When a learning rate became next to nothing."""

    share: float  # of the largest, or less
    after: int  # steps of the optimizer
    scheduled: int | None  # the frame of the scheduler's step that did so


@dataclass
class SunkenRate:
    """How far a scheduler has brought the learning rate below its largest value, and since when."""

    largest: float = 0.0
    rate: float = 0.0
    num_notes: int = 0
    since: dict[float, Sunk] = field(default_factory=dict)  # by the share of the largest

    def note(self, rate: float | None, num_steps: int, frame: int | None) -> None:
        """Note the learning rate that a step of the scheduler has left."""
        if rate is None:
            return
        self.num_notes += 1
        self.largest, self.rate = max(self.largest, rate), rate
        for share in SUNKEN:
            if rate > self.largest * share:
                self.since.pop(share, None)
            elif share not in self.since and (share == min(SUNKEN) or self.num_notes >= num_steps - 1):
                self.since[share] = Sunk(share, num_steps, frame)

    def lasts(self, num_steps: int) -> Sunk | None:
        """Return when it sank, if it has lasted so long since that no schedule ends so.

        A thousandth counts only if the scheduler was stepped after each step: a schedule of epochs may be meant so.
        """
        for share, times in SUNKEN.items():
            sunk = self.since.get(share)
            least = 2 * times if self.rate == 0 else times  # a schedule may end with 0
            if sunk is not None and 0 < least * sunk.after <= num_steps:
                return sunk
        return None


@dataclass
class SeenOptimizer:
    """An optimizer of the program."""

    optimizer: ReferenceType[Optimizer]
    name: str  # of its class, until it steps
    held: frozenset[int]  # the ids of its parameters
    created: int | None = None  # the frame
    plain: dict[int, int] = field(default_factory=dict)  # id of what did not require grad at first -> its version then
    order: int = 0  # how many registrations of modules and parameters came before
    num_steps: int = 0
    num_idle: int = 0  # of the last steps, those that found no gradient
    step: int | None = None  # the frame of the last one
    version: int = 0  # of all its parameters, when compiled code began
    was_compiled: bool = False  # code under torch.compile changed its parameters, so steps may have been missed
    has_state: bool = False
    is_replaced: bool = False  # made anew after one step, on the same line
    was_zero: bool = True  # the learning rate, in each step
    num_at_zero: int = 0  # steps at the beginning that a scheduler has kept at the learning rate 0
    num_late: int = 0  # steps at the beginning with the learning rate 0, until a scheduler stepped for the first time
    has_scheduler: bool = False  # looked for if it was zero
    scheduled: list[int | None] = field(default_factory=list)  # frames of a scheduler's steps before the first step
    had_backward: bool = False  # before the first of these
    num_scheduled: int = 0  # steps of a scheduler
    schedule: int | None = None  # the frame of the last one
    scheduler: int | None = None  # the frame that made the last one that stepped
    kept: str | None = None  # the key of a state that is a gradient's own memory
    num_kept: int = 0  # of the last steps, after which it was so
    falls: RateFalls = field(default_factory=RateFalls)
    sunken: SunkenRate = field(default_factory=SunkenRate)
    factors: RateFactors = field(default_factory=RateFactors)
    used: list[float] = field(default_factory=list)  # the learning rates of the first step, by the groups
    successor: "SeenOptimizer | None" = None  # that steps parameters of this one, which has not stepped since
    num_outlived: int = 0  # steps of a scheduler since then

    def holds(self) -> frozenset[int]:
        """Return the ids of the parameters that it has or, if it is gone, had."""
        optimizer = self.optimizer()
        return self.held if optimizer is None else frozenset(map(id, held_by(optimizer)))


@dataclass
class Optimizers:
    """Tracks the optimizers. The log calls it with what it sees."""

    recorder: Recorder
    seen: list[SeenOptimizer] = field(default_factory=list)

    def create(self, optimizer: Optimizer, order: int, frame: FrameType | None) -> None:
        """Note a new one."""
        number = self.recorder.frames.number_of(frame)
        new = self._new(optimizer)
        new.created, new.order = number, order
        for one in self.seen:
            is_again = one.created == number and number is not None and one.held == new.held
            if is_again and one.num_steps == 1 and one.has_state:
                one.is_replaced = True
        new.falls.rate = largest_rate(optimizer)
        new.sunken.largest = new.falls.rate or 0.0
        self.seen.append(new)

    def of(self, optimizer: Optimizer) -> SeenOptimizer:
        """Return what is known of an optimizer; one that was not seen before is one that was copied or loaded."""
        found = next((one for one in self.seen if one.optimizer() is optimizer), None)
        if found is None:
            found = self._new(optimizer)
            self.seen.append(found)
        return found

    def compiled(self, *, is_entered: bool) -> None:
        """Compare the parameters before and after compiled code, in which no step is seen."""
        for one, optimizer in ((one, one.optimizer()) for one in self.seen if not one.was_compiled):
            if optimizer is None:
                continue
            now = sum(version_of(tensor) or 0 for tensor in held_by(optimizer))
            if is_entered:
                one.version = now
            else:
                one.was_compiled = now != one.version

    @property
    def were_compiled(self) -> bool:
        """Whether compiled code may have made steps."""
        return any(one.was_compiled for one in self.seen)

    def living(self) -> list[Optimizer]:
        """List those that still exist."""
        return [optimizer for one in self.seen if (optimizer := one.optimizer()) is not None]

    def before_step(self, optimizer: Optimizer, frame: FrameType) -> None:
        """Note the learning rates of a step."""
        one = self.of(optimizer)
        one.step = self.recorder.frames.number_of(frame)
        if not one.num_steps:
            one.name = name_of_optimizer(optimizer)
            rates = (number_of(group.get("lr")) for group in optimizer.param_groups)
            one.used = [rate for rate in rates if rate is not None]
        was_zero, one.was_zero = one.was_zero, one.was_zero and _is_zero(optimizer)
        if was_zero and not one.was_zero and not self._others_learn(one):
            one.num_late = one.num_steps if one.num_scheduled == 1 and one.num_steps >= LEAST_LATE else 0
            one.num_at_zero = one.num_steps if one.num_scheduled >= LEAST_KEPT_AT_ZERO else 0
        if one.was_zero and one.num_steps == 1:
            schedulers = instances_of(lr_scheduler.LRScheduler)
            one.has_scheduler = any(scheduler.optimizer is optimizer for scheduler in schedulers)

    def after_step(self, optimizer: Optimizer, *, is_idle: bool) -> None:
        """Note that a step is done, whether there was a gradient for it, and whether it left a state."""
        one = self.of(optimizer)
        one.num_steps += 1
        if sum(len(group["params"]) for group in optimizer.param_groups) != len(one.held):  # some were added
            one.held = one.holds()
        one.successor, one.num_outlived = None, 0
        if one.num_steps == 1:
            self._succeed(one)
        one.num_idle = one.num_idle + 1 if is_idle else 0
        one.kept = _kept_gradient(optimizer)
        one.num_kept = 0 if one.kept is None else one.num_kept + 1
        if not one.has_state:
            one.has_state = any(
                isinstance(value, torch.Tensor) and ops.numel(value) > 1
                for state in optimizer.state.values()
                for value in _values(state)
            )

    def _succeed(self, new: SeenOptimizer) -> None:
        """Note that an optimizer steps for the first time, perhaps in the place of those that have stepped before."""
        held = new.holds()
        for one in self.seen:
            if one is not new and one.num_steps and not held.isdisjoint(one.holds()):
                one.successor, one.num_outlived = new, 0

    def _stepped_instead(self, idle: SeenOptimizer) -> SeenOptimizer | None:
        """Return the optimizer that was made later, for the same parameters as one that never stepped, and steps."""
        later = self.seen[self.seen.index(idle) + 1 :]
        held = idle.holds()
        return next((one for one in later if one.num_steps >= LEAST_OUTLIVED and one.holds() == held), None)

    def schedule(self, scheduler: Any, frame: FrameType, *, had_backward: bool) -> SeenOptimizer | None:
        """Note a step of a scheduler, unless another scheduler or its own constructor makes it; return whose it is."""
        optimizer = getattr(scheduler, "optimizer", None)
        if frame.f_code.co_filename == SCHEDULER_FILE or not isinstance(optimizer, Optimizer):
            return None
        one = self.of(optimizer)
        one.num_scheduled += 1
        if one.successor is not None and not one.successor.num_scheduled:
            one.num_outlived += 1
        elif one.successor is None and not one.num_steps:
            one.successor = self._stepped_instead(one)
        one.schedule = self.recorder.frames.number_of(frame)
        for rates in (one.falls, one.sunken):
            rates.note(largest_rate(optimizer), one.num_steps, one.schedule)
        if one.num_steps:
            one.factors.note(scheduler, one.used, one.schedule)
        if not one.num_steps:
            one.had_backward = had_backward if not one.scheduled else one.had_backward
            one.scheduled.append(self.recorder.frames.number_of(frame))
        return one

    def waits(self) -> str | None:
        """Say which learning rate is still 0: a warm-up, by a scheduler or by hand, may begin with it."""
        open_ones = (one for one in self._at_zero() if not one.has_scheduler or one.num_scheduled < ENOUGH_SCHEDULED)
        one = next(open_ones, None)
        return None if one is None else f"the learning rate of {one.name} was still 0"

    def without_learning_rate(self) -> Iterator[SeenOptimizer]:
        """Yield those whose learning rate was 0 in each step and still is, and that no schedule raises."""
        for one in self._at_zero():
            if not one.has_scheduler or one.num_scheduled >= ENOUGH_SCHEDULED:
                yield one

    def outlived(self) -> Iterator[SeenOptimizer]:
        """Yield those that a scheduler goes on to drive, although another one steps their parameters instead."""
        yield from (one for one in self.seen if one.num_outlived >= LEAST_OUTLIVED)

    def _at_zero(self) -> Iterator[SeenOptimizer]:
        """Yield those that have not learned yet, unless a scheduler lets one begin later than others."""
        others_learn = self._others_learn(None)
        for one in self.seen:
            optimizer = one.optimizer()
            is_zero = one.num_steps > 1 and one.was_zero and (optimizer is None or _is_zero(optimizer))
            if is_zero and not (one.has_scheduler and others_learn):
                yield one

    def _others_learn(self, but: SeenOptimizer | None) -> bool:
        return any(one.num_steps and not one.was_zero for one in self.seen if one is not but)

    def _new(self, optimizer: Optimizer) -> SeenOptimizer:
        held = held_by(optimizer)
        plain = {id(one): version_of(one) or 0 for one in held if type(one) is torch.Tensor and not one.requires_grad}
        return SeenOptimizer(ref(optimizer), type(optimizer).__name__, frozenset(map(id, held)), plain=plain)


def largest_rate(optimizer: Optimizer) -> float | None:
    """Return the largest learning rate of an optimizer; None if it is kept on a device."""
    rates = [number_of(group.get("lr")) for group in optimizer.param_groups]
    numbers = [rate for rate in rates if rate is not None]
    return max(numbers) if numbers and len(numbers) == len(rates) else None


def lost_eps(optimizer: Optimizer | None, key: int) -> float | None:
    """Return the eps by which a step divides a parameter, if it is 0 in the parameter's dtype."""
    for group in () if optimizer is None else optimizer.param_groups:
        tensor = next((one for one in group["params"] if id(one) == key), None)
        eps = number_of(group.get("eps"))
        if tensor is not None and eps is not None and ops.is_floating_point(tensor):
            return (
                eps
                if eps and eps < torch.finfo(tensor.dtype).smallest_normal * torch.finfo(tensor.dtype).eps / 2
                else None
            )
    return None


def _kept_gradient(optimizer: Optimizer) -> str | None:
    """Return the key under which an optimizer of the program keeps a gradient itself, and no copy of it."""
    if module_of(type(optimizer)).startswith("torch.optim"):
        return None
    for tensor in held_by(optimizer):
        gradient, state = gradient_of(tensor), optimizer.state.get(tensor)
        for key, value in dict.items(state) if gradient is not None and isinstance(state, dict) else ():
            if isinstance(value, torch.Tensor) and isinstance(key, str) and _is_same_memory(value, gradient):
                return key
    return None


def _is_same_memory(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two ordinary tensors have all their elements in the same memory."""
    if one is other:
        return True
    if not all(each.layout is torch.strided and ops.numel(each) for each in (one, other)):
        return False
    return bool(ops.data_ptr(one) == ops.data_ptr(other) != 0 and one.shape == other.shape)


def _is_zero(optimizer: Optimizer) -> bool:
    """Return whether every group of an optimizer of torch has the learning rate 0."""
    if not module_of(type(optimizer)).startswith("torch.optim"):
        return False
    rates = [group.get("lr", 1.0) for group in optimizer.param_groups]
    return all(bool(rate == 0) if isinstance(rate, torch.Tensor) else number_of(rate) == 0 for rate in rates)


def _values(state: Any) -> list[Any]:
    return list(state.values()) if isinstance(state, dict) else []
