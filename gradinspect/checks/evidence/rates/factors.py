"""The factors that LambdaLR got from a function of the program, which may be learning rates by mistake.

NOTE [A rate for a factor]
LambdaLR multiplies the learning rate that the optimizer was made with by what its function returns. A function that
returns the learning rate itself makes a square of it. Its largest value is then the learning rate, to the last digit,
and stays so: a warm-up whose first factor happens to be as large goes on to larger ones. A factor that has not changed
yet says less: it counts if there is no number of a half or more in the code of the function, as a warm-up by steps has.
"""

from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any

from torch.optim.lr_scheduler import LambdaLR

LEAST_NOTES = 2  # of the scheduler's steps
_LARGEST_RATE = 0.5  # a larger one is as likely to be a factor
_SAME = 1e-9  # relative
_FACTOR = 0.5


@dataclass
class RateFactors:
    """The factors of one optimizer, by its groups."""

    base: list[float] = field(default_factory=list)  # what each group was made with
    largest: list[float] = field(default_factory=list)
    latest: list[float] = field(default_factory=list)
    num_notes: int = 0  # of the scheduler's steps
    num_since: int = 0  # of them, since a factor was the largest so far
    has_changed: bool = False
    has_other: bool = False  # a number in the code of a function that is a factor
    scheduled: int | None = None  # the frame of the scheduler's last step
    code: CodeType | None = None  # of the first function

    def note(self, scheduler: Any, used: list[float], frame: int | None) -> None:
        """Note a step of a scheduler, after an optimizer has used other learning rates."""
        optimizer = scheduler.optimizer
        if type(scheduler) is not LambdaLR or len(scheduler.base_lrs) != len(used):
            return
        now = [group["lr"] for group in optimizer.param_groups]
        if not self.base:
            self.base = [float(base) for base in scheduler.base_lrs]
            self.has_other = any(_has_factor(one) for one in scheduler.lr_lambdas)
            first = scheduler.lr_lambdas[0]
            self.code = first.__code__ if type(first) is FunctionType else None
            self._take(used)
        self._take(now)
        self.num_notes, self.scheduled = self.num_notes + 1, frame

    @property
    def are_rates(self) -> bool:
        """Whether they are learning rates. NOTE [A rate for a factor]."""
        if not self.num_since or self.num_notes < LEAST_NOTES or not (self.has_changed or not self.has_other):
            return False
        pairs = list(zip(self.base, self.largest, strict=True))
        return all(0 < base < _LARGEST_RATE and abs(one - base) <= _SAME * base for base, one in pairs)

    def _take(self, rates: list[float]) -> None:
        factors = [rate / base if base else 0.0 for rate, base in zip(rates, self.base, strict=True)]
        self.has_changed |= bool(self.latest) and factors != self.latest
        is_larger = not self.largest or any(
            one > known * (1 + _SAME) for one, known in zip(factors, self.largest, strict=True)
        )
        self.largest = [max(pair) for pair in zip(factors, self.largest or factors, strict=True)]
        self.num_since = 0 if is_larger else self.num_since + 1
        self.latest = factors


def _has_factor(function: Any) -> bool:
    """Return whether there is a number in a function's code that is too large for a learning rate, or no code."""
    if type(function) is not FunctionType:
        return True
    todo: list[CodeType] = [function.__code__]
    while todo:
        constants = todo.pop().co_consts
        todo += [one for one in constants if isinstance(one, CodeType)]
        if any((type(one) is float and one >= _FACTOR) or (type(one) is int and one == 1) for one in constants):
            return True
    return False
