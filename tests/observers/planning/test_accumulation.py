"""Smaller batches under one step of an optimizer: the same gradients as those of the whole batch, in any loop."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import Optimizer

from gradinspect.observers.planning.accumulation import Accumulation
from gradinspect.observers.planning.zeroed_gradients import ZeroedGradients
from gradinspect.torch_api.hooks import optimizer_steps

SIZE = 8
NUM_BATCHES = 8


def reraised(error: Exception) -> None:
    """Let an error of a listener fail the test."""
    raise error


def descent(model: nn.Module) -> Optimizer:
    """Make an optimizer of a class of its own: torch wraps the step of each class once."""

    class Descent(Optimizer):
        def step(self, _closure: object = None) -> None:
            for parameter in self.param_groups[0]["params"]:
                parameter.data.sub_(0.1 * parameter.grad)

    return Descent(model.parameters(), {})


class Training:
    """A model of two halves, and an optimizer for each."""

    def __init__(self, parts: int) -> None:
        """Begin with the same weights and the same data."""
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(4, 4, dtype=torch.float64), nn.Linear(4, 1, dtype=torch.float64)
        self.model = nn.Sequential(self.first, nn.Tanh(), self.second)
        self.one, self.other = descent(self.first), descent(self.second)
        self.parts = parts
        data = torch.randn(NUM_BATCHES, SIZE, 4, dtype=torch.float64)
        self.batches: Iterator[torch.Tensor] = iter(data.reshape(NUM_BATCHES * parts, SIZE // parts, 4))

    def backward(self, share: float = 1) -> None:
        """Add the gradients of the next batch, whose loss is a mean."""
        (self.model(next(self.batches)).square().mean() * share / self.parts).backward()


Loop = Callable[[Training, int], None]


def clears_model_first(training: Training, _number: int) -> None:
    """Clear by the model, at the start."""
    training.model.zero_grad()
    training.backward()
    training.one.step()
    training.other.step()


def clears_model_last(training: Training, _number: int) -> None:
    """Clear by the model, at the end."""
    training.backward()
    training.one.step()
    training.other.step()
    training.model.zero_grad()


def clears_optimizers_first(training: Training, _number: int) -> None:
    """Clear by each optimizer, at the start."""
    for optimizer in (training.one, training.other):
        optimizer.zero_grad()
    training.backward()
    for optimizer in (training.one, training.other):
        optimizer.step()


def clears_optimizers_last(training: Training, _number: int) -> None:
    """Clear by each optimizer, after its own step."""
    training.backward()
    for optimizer in (training.one, training.other):
        optimizer.step()
        optimizer.zero_grad()


def clears_halves(training: Training, _number: int) -> None:
    """Clear the halves of the model, one to zeros, and by the optimizers too."""
    training.first.zero_grad()
    training.second.zero_grad(set_to_none=False)
    clears_optimizers_last(training, _number)


def accumulates(training: Training, number: int) -> None:
    """Step for every two batches."""
    training.backward(0.5)
    if number % 2:
        training.one.step()
        training.other.step()
        training.model.zero_grad()


def steps_one_more_often(training: Training, number: int) -> None:
    """Step with one optimizer for each batch, with the other for every second one."""
    training.model.zero_grad()
    training.backward()
    training.one.step()
    if number % 2:
        training.other.step()


def as_pasted(training: Training, number: int) -> None:
    """Do what the plan says: make every nth step, and clear right after it."""
    training.backward()
    if number % training.parts == training.parts - 1:
        training.one.step()
        training.other.step()
        training.model.zero_grad()


def gradients(loop: Loop, parts: int) -> list[list[float]]:
    """Run a loop, and return the gradients of each step that an optimizer really makes."""
    training = Training(parts)
    found: list[list[float]] = []

    def note(optimizer: Optimizer, _args: object, _kwargs: object) -> None:
        found.append([x for one in optimizer.param_groups[0]["params"] for x in one.grad.flatten().tolist()])

    with optimizer_steps(before=note, note=reraised):
        for number in range(NUM_BATCHES * parts):
            loop(training, number)
    return found


@pytest.mark.parametrize("parts", [2, 4])
@pytest.mark.parametrize(
    "loop",
    [
        clears_model_first, clears_model_last, clears_optimizers_first, clears_optimizers_last, clears_halves,
        accumulates, steps_one_more_often,
    ],
)  # fmt: skip
def test_gradients_are_those_of_the_whole_batch(loop: Loop, parts: int) -> None:
    """Two optimizers, cleared by the model, by themselves, first or last; a program that accumulates already."""
    whole = gradients(loop, 1)
    with Accumulation(parts).applied():
        split = gradients(loop, parts)

    assert len(split) == len(whole) > 0
    for expected, actual in zip(whole, split, strict=True):
        assert actual == pytest.approx(expected, rel=1e-12)


def test_the_program_that_was_changed_by_hand_has_them_too() -> None:
    """The plan says to clear right after the last step of a batch, and nowhere else."""
    whole, changed = gradients(clears_model_first, 1), gradients(as_pasted, 2)

    assert len(changed) == len(whole)
    for expected, actual in zip(whole, changed, strict=True):
        assert actual == pytest.approx(expected, rel=1e-12)


@contextmanager
def watched() -> Iterator[ZeroedGradients]:
    """Watch calls, steps, and what is cleared."""
    run: Any = SimpleNamespace(base_folder=Path(__file__).parent)
    phases: Any = SimpleNamespace(phase="forward", num_optimizer_steps=0)
    with ZeroedGradients(run, phases) as zeroed, optimizer_steps(before=zeroed.step, note=reraised):
        yield zeroed


def alternates(training: Training) -> bool:
    """Train as a GAN does: each optimizer after a backward call of its own."""
    with watched() as order:
        for _ in range(2):
            for optimizer in (training.one, training.other):
                optimizer.zero_grad()
                order.backward()
                training.backward()
                optimizer.step()
        return order.alternates


def test_optimizers_that_take_turns_are_noticed() -> None:
    """Not those that step after the same backward call, though one does so less often."""
    training = Training(1)

    assert alternates(Training(1))
    with watched() as order:
        for number in range(4):
            order.backward()
            steps_one_more_often(training, number)

    assert not order.alternates
