"""What ReduceLROnPlateau takes for progress, and what its number is by the name that the program gives it.

NOTE [The other direction]
If each new low of a loss is refused, since the scheduler waits for a high, the scheduler has the wrong mode.
That a number only grows proves nothing: a validation loss does so when a model overfits. So the name decides what the
number is, and what happened decides whether it matters.

NOTE [A plateau of batches]
A few calls without a new low are a plateau if each call is an epoch. The losses of batches go up and down by chance, so
a few batches without a new low happen all the time. Who steps the scheduler with each batch on purpose gives it a
patience of hundreds. So it counts if the patience is one for epochs, each step of the optimizer was followed by one of
the scheduler, which was told the very loss that backward is called on, and this is in a loop over batches inside of one
over epochs.
"""

from ast import Attribute, Call, For, Name, expr, unparse
from dataclasses import dataclass
from math import isfinite
from typing import Any

import torch
from torch.optim.lr_scheduler import ReduceLROnPlateau

from gradinspect.checks.evidence.rates.scheduler_sources import direction, told_at
from gradinspect.recording.source_structure import calls_of, contains, enclosing
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.classes import number_of
from gradinspect.torch_api.patching.originals import ops

LEAST_RECORDS = 3
LEAST_BATCHES = 5  # calls of step(), each after one step of the optimizer
MOST_EPOCHS = 20  # of patience
_CHANGE = 0.01  # relative; a threshold that is larger may refuse it


@dataclass
class PlateauLog:
    """The numbers that one scheduler was given on one line."""

    file: str
    line: int
    scheduled: int | None = None  # the frame
    first: float | None = None
    record: float = 0.0
    mode: str = "min"
    num_records: int = 0  # that were refused
    num_taken: int = 0  # numbers after the first that counted as progress
    num_told: int = 0
    num_steps: int = 0  # of the optimizer
    is_after_each: bool = True  # step of the optimizer
    patience: int = 0

    def note(self, scheduler: ReduceLROnPlateau, metric: Any, num_steps: int) -> None:
        """Note a step, and how many the optimizer has made. NOTE [The other direction]."""
        self.is_after_each = self.is_after_each and (not self.num_told or num_steps == self.num_steps + 1)
        self.num_told, self.num_steps, self.patience = self.num_told + 1, num_steps, scheduler.patience
        value = _number(metric)
        if value is None or scheduler.threshold > _CHANGE / 2:
            return
        if self.first is None:
            self.first, self.record, self.mode = value, value, scheduler.mode
        elif scheduler.best == value:
            self.num_taken += 1
        elif self._is_better(value):
            self.record, self.num_records = value, self.num_records + 1

    def _is_better(self, value: float) -> bool:
        """Return whether a number is better than all before, in the direction that the scheduler does not look in."""
        gain = self.record - value if self.mode == "max" else value - self.record
        return gain > _CHANGE * max(abs(self.record), abs(value))

    def refused(self) -> str | None:
        """Write the number that moved only in the direction that it should, and was refused each time."""
        if self.num_records < LEAST_RECORDS or self.num_records <= 2 * self.num_taken:
            return None
        given = told_at(self.file, self.line)
        wanted = "falls" if self.mode == "max" else "rises"
        return None if given is None or direction(self.file, given) != wanted else unparse(given)

    def batch_loss(self) -> str | None:
        """Write the loss of one batch that the scheduler is told each time. NOTE [A plateau of batches]."""
        if not self.is_after_each or self.num_told < LEAST_BATCHES or self.patience > MOST_EPOCHS:
            return None
        given = told_at(self.file, self.line)
        loss = None if given is None else _loss_in(given)
        if loss is None or not _is_over_batches(self.file, self.line):
            return None
        loops = [one for one in enclosing(self.file, self.line) if isinstance(one, For)]
        losses = [
            unparse(call.func.value) for call in calls_of(self.file, "backward")
            if isinstance(call.func, Attribute) and contains(loops[0], call.lineno)
        ]  # fmt: skip
        return loss if loss in losses else None


def _loss_in(told: expr) -> str | None:
    """Write the variable in `loss`, `loss.item()`, `loss.detach()` and `float(loss)`."""
    while isinstance(told, Call):
        match told:
            case Call(func=Attribute(value=inner, attr="item" | "detach" | "cpu"), args=[]):
                told = inner
            case Call(func=Name(id="float"), args=[inner]):
                told = inner
            case _:
                return None
    return unparse(told) if isinstance(told, Name | Attribute) else None


def _is_over_batches(file: str, line: int) -> bool:
    """Return whether the innermost loop around a line goes over batches, and another one over epochs."""
    loops = [one for one in enclosing(file, line) if isinstance(one, For)]
    if len(loops) < 2 or "epoch" in unparse(loops[0].target):
        return False
    return "range(" not in unparse(loops[0].iter) or any("epoch" in unparse(one.target) for one in loops[1:])


def _number(metric: Any) -> float | None:
    if type(metric) is torch.Tensor and ops.numel(metric) == 1:
        with unobserved():
            metric = ops.item(ops.detach(metric))
    known = number_of(metric)
    return float(known) if known is not None and isfinite(known) else None
