"""Closures that an optimizer calls several times in a step, and that do not clear the gradients."""

from dataclasses import dataclass
from threading import local
from weakref import ReferenceType, ref

from torch.optim import LBFGS, Optimizer

from gradinspect.checks.evidence.optimizer_names import name_of_optimizer

LEAST_CALLS = 2


@dataclass
class ClosureUse(local):  # steps of several threads may run at a time
    """Tracks the step that this thread runs, of the one optimizer of torch that calls its closure again and again."""

    optimizer: ReferenceType[LBFGS] | None = None
    name: str = ""
    since: int = 0  # the time at which it began
    step: int | None = None  # the frame of its line
    num_before: int = 0  # calls of the closure

    def begin(self, optimizer: Optimizer, time: int, step: int | None) -> None:
        """Note that a step begins."""
        if isinstance(optimizer, LBFGS):
            self.optimizer, self.since, self.step = ref(optimizer), time, step
            self.name, self.num_before = name_of_optimizer(optimizer), _num_calls(optimizer)

    def end(self) -> None:
        """Note that it is over."""
        self.optimizer = None

    def repeating(self) -> LBFGS | None:
        """Return the optimizer if it has called its closure twice in this step already."""
        optimizer = None if self.optimizer is None else self.optimizer()
        is_repeating = optimizer is not None and _num_calls(optimizer) - self.num_before >= LEAST_CALLS
        return optimizer if is_repeating else None


def _num_calls(optimizer: LBFGS) -> int:
    states = [state for state in optimizer.state.values() if isinstance(state, dict)]
    counts = [state.get("func_evals") for state in states]
    return sum(count for count in counts if isinstance(count, int))
