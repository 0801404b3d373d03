"""How often a scheduler is stepped, beside what its length was made for.

NOTE [Epochs or batches]
A schedule knows no epochs: it counts calls of step(). What its length counts is in the source: the number that a loop
over epochs runs to, or the length of a loader. `T_max=epochs` that is stepped after each batch comes back up from zero
before the first epochs are over; `total_steps=epochs * len(loader)` that is stepped once per epoch never leaves its
warm-up. The length of another list is no number of batches: it must be divisible by the steps between two calls. And
where several steps are made with each batch, the scheduler is stepped in the loop over the batches.

NOTE [Milestones of epochs]
Milestones are numbers, and nothing says of what. But where all of them lie within the passes of the loop over epochs,
and all are behind before a third of them is over, they were no numbers of batches: the rest of the training would have
the last learning rate.
"""

from ast import For, unparse
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Literal, NamedTuple

from gradinspect.checks.evidence.rates.epoch_loops import EpochLoop, epoch_loop
from gradinspect.checks.evidence.rates.scheduler_sources import MadeScheduler, made_scheduler, numbers_of_loops
from gradinspect.recording.source_structure import enclosing

LEAST_SCHEDULED = 2  # steps of a scheduler, with the same number of steps of its optimizer before each
_PAST = 1.5  # times its length
SCHEDULES = {  # the place of the argument with the length, and its name, which the attribute has too
    "CosineAnnealingLR": (1, "T_max"),
    "OneCycleLR": (2, "total_steps"),
    "LinearLR": (3, "total_iters"),
    "PolynomialLR": (1, "total_iters"),
    "MultiStepLR": (1, "milestones"),
    "StepLR": (1, "step_size"),
}
_DROPPING = frozenset(("MultiStepLR", "StepLR"))
_DROPS = 3  # of a StepLR, that are behind
_LARGE_DROP = 0.5  # a smaller one may well be meant for each few batches
_LEAST_EPOCHS = 3
_EARLY = 3  # passes of the loop, to one until then


class Pace(NamedTuple):
    """A scheduler that is stepped at another pace than its length was made for."""

    counts: Literal["epochs", "batches"]
    given: str
    made: MadeScheduler | None
    loop: EpochLoop | None = None  # around the step by which all of it was behind


@dataclass
class PaceLog:
    """The steps of one scheduler on one line."""

    file: str = ""
    line: int = 0
    name: str = ""
    length: int = 0
    scheduled: int | None = None  # the frame
    num_scheduled: int = 0
    num_steps: int = 0  # of the optimizer
    gaps: set[int] = field(default_factory=set)  # steps of the optimizer between two of the scheduler
    given: str = ""  # the milestones
    loop: EpochLoop | None = None  # around the step by which they were behind

    def note(self, scheduler: Any, num_steps: int, caller: FrameType) -> None:
        """Note a step, and the frame that makes it."""
        name = type(scheduler).__name__
        length = getattr(scheduler, SCHEDULES[name][1], None)
        if name == "MultiStepLR" and isinstance(length, dict) and all(type(one) is int for one in length):
            self.given = f"milestones={sorted(length)}"
            length = max(length, default=None)
        if not isinstance(length, int):
            return
        if name in _DROPPING and getattr(scheduler, "gamma", 1.0) <= _LARGE_DROP:
            drops = 1 if name == "MultiStepLR" else _DROPS
            self.loop = epoch_loop(caller) if self.num_scheduled + 1 == drops * length else self.loop
        self.name, self.length = name, length
        self.gaps.add(num_steps - self.num_steps)
        self.num_scheduled, self.num_steps = self.num_scheduled + 1, num_steps

    def other(self) -> Pace | None:
        """Return what shows that it is stepped too often, or too seldom. NOTE [Epochs or batches]."""
        if self.num_scheduled < LEAST_SCHEDULED or len(self.gaps) != 1:
            return None
        (gap,) = self.gaps
        if self.name in _DROPPING:
            return self._dropped() if gap == 1 else None
        is_past = gap == 1 and self.name == "CosineAnnealingLR" and self.num_scheduled > _PAST * self.length
        is_slow = gap > 1 and self.length > gap and self.length % gap == 0 and not self._is_with_each_batch()
        made = made_scheduler(self.name) if is_past or is_slow else None
        if made is None:
            return None
        return _counts_epochs(made) if is_past else _counts_batches(made)

    def _dropped(self) -> Pace | None:
        """Return that milestones of epochs were behind after a few batches. NOTE [Milestones of epochs]."""
        loop = self.loop
        if loop is None or max(_LEAST_EPOCHS, self.length, _EARLY * loop.current) > loop.num_passes:
            return None
        return Pace("epochs", self.given or f"step_size={self.length}", made_scheduler(self.name), loop)

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
