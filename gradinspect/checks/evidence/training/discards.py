"""Gradients that are cleared between two backward calls of one step, so that the step applies only the last of them.

NOTE [Discarded on purpose]
The generator's backward leaves gradients in the discriminator, which are cleared before its own backward: the
generator's optimizer steps in between, or the two backward calls are on different lines. A closure clears the gradients
that its optimizer has read: that is during a step. A step that is skipped once is no habit. So a gradient counts as
discarded if no optimizer has stepped since its backward, if the one that is applied comes from the same line, and if it
happened before two steps in a row.
"""

from dataclasses import dataclass

LEAST_STEPS = 2


@dataclass
class Discards:
    """What was cleared of the gradient of one parameter, unused. Lines are numbers of frames."""

    backward: int | None = None
    clearing: int | None = None
    is_open: bool = False  # something was cleared since the last step
    num_steps: int = 0  # in a row, before which something was cleared

    def note(self, backward: int | None, clearing: int | None) -> None:
        """Note that a gradient of a backward call was cleared, and nobody had used it."""
        self.backward, self.clearing, self.is_open = backward, clearing, True

    def step(self, backward: int | None) -> bool:
        """Note a step with a gradient of a backward call. Returns whether it is the habit to lose the others."""
        is_lost = self.is_open and backward is not None and backward == self.backward
        self.num_steps = self.num_steps + 1 if is_lost else 0
        self.is_open = False
        return self.num_steps >= LEAST_STEPS
