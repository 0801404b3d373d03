"""Whether gradients may be cleared right after the step of their optimizer."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from gradinspect.observers.planning.zeroed_gradients import ZeroedGradients


@contextmanager
def watched() -> Iterator[ZeroedGradients]:
    """Watch a program whose forward of a later step is running."""
    run: Any = SimpleNamespace(base_folder=Path(__file__).parent)
    phases: Any = SimpleNamespace(phase="forward", num_optimizer_steps=1)
    with ZeroedGradients(run, phases) as zeroed:
        yield zeroed


def trained(*sizes: int) -> list[torch.optim.Optimizer]:
    """Make some optimizers."""
    return [torch.optim.SGD(nn.Linear(size, 1).parameters(), lr=0.1) for size in sizes]


def test_what_is_cleared_before_the_next_backward_call_can_be_cleared_earlier() -> None:
    """After several calls, too, and by another one of `autograd.grad`, which adds nothing."""
    (optimizer,) = trained(2)
    with watched() as zeroed:
        optimizer.zero_grad()
        for _ in range(2):
            zeroed.backward()
            zeroed.backward()
            zeroed.step(optimizer, (), {})
            optimizer.zero_grad()

        assert zeroed.release is not None
        assert zeroed.release.line.startswith("test_zeroed_gradients.py:")


@pytest.mark.parametrize("of_model", [False, True])
def test_what_another_call_has_left_is_cleared_where_it_is(of_model: bool) -> None:
    """As what a generator's loss leaves in the discriminator."""
    generator, discriminator = trained(2, 3)
    model = nn.Linear(3, 1)
    with watched() as zeroed:
        for _ in range(2):
            generator.zero_grad()
            zeroed.backward()
            zeroed.step(generator, (), {})
            if of_model:
                zeroed.backward()
                model.zero_grad()
            else:
                discriminator.zero_grad()
                zeroed.backward()
            zeroed.step(discriminator, (), {})

        assert zeroed.release is None
