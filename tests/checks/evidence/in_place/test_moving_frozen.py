"""Frozen parameters that a step moves all the same."""

import sys
import weakref

import pytest
import torch
from torch import nn

from gradinspect.checks.evidence.in_place.moving_frozen import Moved, MovingFrozen
from gradinspect.checks.evidence.training.gradient_use import GradientUse
from gradinspect.checks.evidence.training.optimizers import SeenOptimizer
from gradinspect.recording.recorder import Recorder


class Loop:
    """Some parameters and their optimizer, and a log that is told what they do."""

    def __init__(self, num_parameters: int = 1, beside: "Loop | None" = None) -> None:
        """Make as many parameters; both loops tell the same log."""
        self.weights = [nn.Parameter(torch.ones(2)) for _ in range(num_parameters)]
        self.gradients: GradientUse = GradientUse(Recorder()) if beside is None else beside.gradients
        self.log: MovingFrozen = (
            beside.log
            if beside is not None
            else MovingFrozen(self.gradients, {id(weight): 40 + place for place, weight in enumerate(self.weights)})
        )
        self.optimizer = torch.optim.SGD(self.weights, lr=0.1)
        self.num_steps = 0

    def backward(self) -> None:
        """Add to the gradients."""
        named: list[tuple[torch.Tensor, str]] = [(one, f"w{place}") for place, one in enumerate(self.weights)]
        self.gradients.begin(named, sys._getframe())
        torch.stack([weight.sum() for weight in self.weights]).sum().backward()
        self.gradients.end()

    def freeze(self) -> None:
        """Freeze all."""
        for weight in self.weights:
            weight.requires_grad_(False)

    def thaw(self) -> None:
        """Undo it."""
        for weight in self.weights:
            weight.requires_grad_(True)

    def step(self) -> None:
        """Step, on a line of its own."""
        self.num_steps += 1
        seen = SeenOptimizer(weakref.ref(self.optimizer), "sgd", frozenset(), step=self.num_steps)
        self.gradients.before_step(self.optimizer, sys._getframe())
        self.log.before_step(self.optimizer)
        self.optimizer.step()
        self.gradients.after_step(self.optimizer)
        self.log.after_step(self.optimizer, seen)

    def found(self) -> list[Moved]:
        """List what has moved."""
        return list(self.log.found.values())


def after(events: str, num_parameters: int = 1) -> Loop:
    """Run a loop written as letters."""
    loop = Loop(num_parameters)
    ways = {
        "b": loop.backward, "s": loop.step, "f": loop.freeze, "t": loop.thaw, "?": loop.gradients.unobserved,
    }  # fmt: skip
    for event in events:
        ways[event]()
    return loop


@pytest.mark.parametrize(
    ("events", "step"),
    [
        ("bs", None),
        ("bsfs", 2),
        ("bsfsss", 2),  # the first that moved it
        ("bfs", None),  # between backward and step: the gradient is to be applied
        ("bsbfs", None),
        ("bsbfss", 3),
        ("fs", None),
        ("bsfts", None),
        ("bs?fs", None),  # what is not observed may have left it
        ("b?sfs", 2),
    ],
)
def test_a_step_that_moves_what_is_frozen(events: str, step: int | None) -> None:
    """By a gradient that an earlier step has used; with the line that froze it."""
    assert after(events).found() == ([] if step is None else [Moved("w0", 40, step, "sgd")])


def test_only_a_few_are_compared() -> None:
    """A copy is made of each."""
    assert [one.name for one in after("bsfs", 6).found()] == ["w0", "w1", "w2", "w3"]
    assert [one.frozen for one in after("bsfs", 2).found()] == [40, 41]


def test_what_no_backward_has_reached_is_left_alone() -> None:
    """The program may set gradients of its own."""
    loop = Loop()
    loop.gradients.wanted(loop.weights)
    loop.weights[0].grad = torch.ones(2)
    for way in (loop.step, loop.freeze, loop.step):
        way()

    assert loop.found() == []


def test_steps_of_two_threads_at_a_time_are_kept_apart() -> None:
    """Each compares what its own optimizer holds, and has its own name."""
    first = Loop()
    loops = {"first": first, "second": Loop(beside=first)}
    for loop in loops.values():
        loop.backward()
        loop.step()
        loop.freeze()
    for loop in loops.values():
        loop.log.before_step(loop.optimizer)
    for name, loop in loops.items():
        loop.optimizer.step()
        loop.log.after_step(loop.optimizer, SeenOptimizer(weakref.ref(loop.optimizer), name, frozenset(), step=2))

    assert [moved.optimizer for moved in first.found()] == ["first", "second"]
