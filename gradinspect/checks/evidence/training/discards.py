"""Backward calls of which every gradient is cleared before a step, so that the step applies only what came later.

NOTE [Discarded on purpose]
The generator's backward leaves gradients in the discriminator, which are cleared before its own backward; but those in
the generator stay until it steps. So a call counts as lost only if all that it has left is cleared, unread, before any
optimizer steps. A closure clears the gradients that its optimizer has read: that is during a step. A step that is
skipped once is not a habit: so it must happen before two steps in a row.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

LEAST_STEPS = 2


@dataclass
class Left:
    """What one backward call has left. Lines are numbers of frames, parameters are ids."""

    backward: int | None
    reached: Collection[int]
    cleared: set[int] = field(default_factory=set)
    clearing: int | None = None

    @property
    def is_lost(self) -> bool:
        """Whether nothing of it is there any more."""
        return self.cleared.issuperset(self.reached)


@dataclass
class Discards:
    """Follows the backward calls since the last step."""

    _calls: list[Left] = field(default_factory=list)
    _num_steps: dict[int | None, int] = field(default_factory=dict)  # in a row, before which a line lost its gradients

    def reached(self, backward: int | None, reached: Collection[int]) -> None:
        """Note a backward call."""
        self._calls.append(Left(backward, reached))

    def unobserved(self) -> None:
        """Note that calls and steps were not watched."""
        self._calls.clear()

    def cleared(self, key: int, clearing: int | None) -> None:
        """Note that a gradient was cleared, and nobody had used or read it."""
        for call in self._calls:
            if key in call.reached and key not in call.cleared:
                call.cleared.add(key)
                call.clearing = clearing

    def step(self) -> Left | None:
        """Note a step. Returns the call that is lost by habit before a step that applies others."""
        calls, self._calls = self._calls, []
        lost = [call for call in calls if call.is_lost]
        if len(lost) == len(calls):
            return None
        self._num_steps = {call.backward: self._num_steps.get(call.backward, 0) + 1 for call in lost}
        return next((call for call in lost if self._num_steps[call.backward] >= LEAST_STEPS), None)
