"""How often a scheduler is stepped, beside what its length was made for.

NOTE [Epochs or batches]
A schedule knows no epochs: it counts calls of step(). What its length counts is in the source: the number that a loop
over epochs runs to, or the length of a loader. `T_max=epochs` that is stepped after each batch comes back up from zero
before the first epochs are over; `total_steps=epochs * len(loader)` that is stepped once per epoch never leaves its
warm-up. The length of another list is no number of batches: it must be divisible by the steps between two calls. And
where several steps are made with each batch, the scheduler is stepped in the loop over the batches. Milestones that
were all passed in the first tenth of the steps count epochs: a rate that is divided by ten for the other nine is no
schedule.
"""

from ast import For, unparse
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from gradinspect.checks.evidence.rates.scheduler_sources import MadeScheduler, made_scheduler, numbers_of_loops
from gradinspect.recording.source_structure import enclosing

LEAST_SCHEDULED = 2  # steps of a scheduler, with the same number of steps of its optimizer before each
_PAST = 1.5  # times its length
_MOST_LEFT = 0.1  # of the learning rate after the last milestone
_PAST_MILESTONES = 10  # times the last one
SCHEDULES = {  # the place of the argument with the length, and its name, which the attribute has too
    "CosineAnnealingLR": (1, "T_max"),
    "OneCycleLR": (2, "total_steps"),
    "LinearLR": (3, "total_iters"),
    "PolynomialLR": (1, "total_iters"),
    "MultiStepLR": (1, "milestones"),
}


class Pace(NamedTuple):
    """A scheduler that is stepped at another pace than its length was made for."""

    counts: Literal["epochs", "batches"]
    given: str
    made: MadeScheduler


@dataclass
class PaceLog:
    """The steps of one scheduler on one line."""

    file: str = ""
    line: int = 0
    name: str = ""
    length: int = 0
    left: float = 1.0  # of the learning rate, after the last milestone
    scheduled: int | None = None  # the frame
    num_scheduled: int = 0
    num_steps: int = 0  # of the optimizer
    gaps: set[int] = field(default_factory=set)  # steps of the optimizer between two of the scheduler

    def note(self, scheduler: Any, num_steps: int) -> None:
        """Note a step."""
        name = type(scheduler).__name__
        length = getattr(scheduler, SCHEDULES[name][1], None)
        if isinstance(length, Counter):  # of milestones
            self.left = float(scheduler.gamma) ** sum(length.values())
            length = max(length, default=None)
        if not isinstance(length, int):
            return
        self.name, self.length = name, length
        self.gaps.add(num_steps - self.num_steps)
        self.num_scheduled, self.num_steps = self.num_scheduled + 1, num_steps

    def other(self) -> Pace | None:
        """Return what shows that it is stepped too often, or too seldom. NOTE [Epochs or batches]."""
        if self.num_scheduled < LEAST_SCHEDULED or len(self.gaps) != 1:
            return None
        (gap,) = self.gaps
        is_past = gap == 1 and self._is_past()
        is_slow = (
            gap > 1
            and self.length > gap
            and self.length % gap == 0
            and self.name != "MultiStepLR"
            and not self._is_with_each_batch()
        )
        made = made_scheduler(self.name) if is_past or is_slow else None
        if made is None:
            return None
        return _counts_epochs(made) if is_past else _counts_batches(made)

    def _is_past(self) -> bool:
        """Return whether it was stepped far beyond its length."""
        if self.name == "MultiStepLR":
            return self.left <= _MOST_LEFT and self.num_scheduled >= _PAST_MILESTONES * self.length
        return self.name == "CosineAnnealingLR" and self.num_scheduled > _PAST * self.length

    def _is_with_each_batch(self) -> bool:
        """Return whether a loop around the step goes over something else than numbers."""
        loops = [one for one in enclosing(self.file, self.line) if isinstance(one, For)]
        return any("range(" not in unparse(one.iter) for one in loops)


def _counts_epochs(made: MadeScheduler) -> Pace | None:
    place, name = SCHEDULES[made.name]
    length = made.argument(place, name)
    if length is None:
        return None
    text = made.meaning(length)
    if made.name == "MultiStepLR":
        return Pace("epochs", f"{name}={text}", made)
    is_told = not {unparse(length), text}.isdisjoint(numbers_of_loops(made.file)) and "len(" not in text
    return Pace("epochs", f"{name}={unparse(length)}", made) if is_told else None


def _counts_batches(made: MadeScheduler) -> Pace | None:
    per_epoch = made.argument(4, "steps_per_epoch") if made.has("steps_per_epoch") else None
    if per_epoch is not None:
        return Pace("batches", f"steps_per_epoch={unparse(per_epoch)}", made)
    place, name = SCHEDULES[made.name]
    length = made.argument(place, name)
    if length is None or "len(" not in made.meaning(length):
        return None
    return Pace("batches", f"{name}={unparse(length)}", made)
