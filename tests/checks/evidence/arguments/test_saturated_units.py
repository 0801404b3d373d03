"""Units of the first layer that are saturated."""

import pytest
import torch
from argument_facts import facts_of
from torch import nn

from gradinspect.checks.evidence.arguments.saturated_units import MOST_CALLS
from gradinspect.checks.facts.dead_units import SaturatedUnits


def activated(scale: float, function: str = "sigmoid", reader: nn.Module | None = None) -> list[SaturatedUnits]:
    """Activate a layer of data of some size, and give that to another layer."""
    first, last = nn.Linear(4, 8, bias=False), reader or nn.Linear(8, 1)
    x = scale * (1 + torch.rand(16, 4))
    with torch.no_grad():
        first.weight.copy_(torch.full((8, 4), 0.1))

    def step() -> None:
        h = first(x)
        last(getattr(torch, function)(h))

    return facts_of(SaturatedUnits, step, calls=MOST_CALLS)


@pytest.mark.parametrize("function", ["sigmoid", "tanh"])
def test_large_data_saturate_the_first_layer(function: str) -> None:
    """The greatest of them is known."""
    (found,) = activated(10_000.0, function)

    assert (found.function, found.share) == (function, 1)
    assert 10_000 < found.greatest <= 20_000


def test_small_data_and_an_answer_are_as_they_should_be() -> None:
    """What no other layer reads may be as sure as that."""
    assert activated(1.0) == activated(1.0, "tanh") == activated(10_000.0, "relu") == []
    assert activated(10_000.0, reader=nn.Identity()) == []
