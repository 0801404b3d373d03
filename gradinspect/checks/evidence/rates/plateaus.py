"""What ReduceLROnPlateau takes for progress, and what its number is by the name that the program gives it.

NOTE [The other direction]
If each new low of a loss is refused, since the scheduler waits for a high, the scheduler has the wrong mode.
That a number only grows proves nothing: a validation loss does so when a model overfits. So the name decides what the
number is, and what happened decides whether it matters.
"""

from ast import unparse
from dataclasses import dataclass
from math import isfinite
from typing import Any

import torch
from torch.optim.lr_scheduler import ReduceLROnPlateau

from gradinspect.checks.evidence.rates.scheduler_sources import direction, told_at
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.originals import ops

LEAST_RECORDS = 3
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

    def note(self, scheduler: ReduceLROnPlateau, metric: Any) -> None:
        """Note a step. NOTE [The other direction]."""
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


def _number(metric: Any) -> float | None:
    if type(metric) is torch.Tensor and ops.numel(metric) == 1:
        with unobserved():
            metric = ops.item(ops.detach(metric))
    if not isinstance(metric, int | float):
        return None
    return float(metric) if isfinite(metric) else None
