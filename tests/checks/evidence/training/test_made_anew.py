"""Parameters that are made anew for each backward call."""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from training_program import Program, code_of

from gradinspect.checks.facts.training import UnheldParameters

X = torch.ones(3, 2)


def made_anew(use: Callable[[nn.Module], object] = lambda _layer: None, num_calls: int = 4) -> list[UnheldParameters]:
    """Train a model and a layer that is new in each iteration; `use` may use the layer after backward."""
    program = Program()
    with program:
        model = nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(num_calls):
            layer = nn.Linear(2, 2)
            optimizer.zero_grad()
            program.backward(layer(model(X)).sum())
            use(layer)
            optimizer.step()
    return program.facts(UnheldParameters)


def test_a_layer_that_is_new_in_each_call() -> None:
    """It is found by the line that makes it."""
    (found,) = made_anew()

    assert (found.kind, code_of(found.made)) == ("anew", "layer = nn.Linear(2, 2)")


@pytest.mark.parametrize("num_calls", [2, 3])
def test_some_calls_may_have_a_layer_of_their_own(num_calls: int) -> None:
    """The first step is not done when the first of them is made."""
    assert made_anew(num_calls=num_calls) == []


@pytest.mark.parametrize(
    "use",
    [
        lambda layer: layer.weight.grad.sum(),  # as meta-learning does, which copies a model for each task
        lambda layer: torch.optim.SGD(layer.parameters(), lr=0.1).step(),
    ],
)
def test_new_layers_that_somebody_uses(use: Callable[[nn.Module], object]) -> None:
    """Their gradients are read, or they have an optimizer of their own."""
    assert made_anew(use) == []
