"""Which moving averages take nearly all of the new value."""

from collections.abc import Callable

import pytest
import torch
from argument_facts import facts_of
from torch import Tensor, nn

from gradinspect.checks.facts.axes import SwappedAverage

NEW = nn.Parameter(torch.randn(4, 3))


def of_products(kept: Tensor, low: float) -> None:
    """Copy the sum of two products."""
    kept.copy_(low * kept + (1 - low) * NEW.data)


def of_data(kept: Tensor, low: float) -> None:
    """Give the tensor the sum as its data."""
    kept.data = (1 - low) * NEW.data + kept.data * low


@pytest.mark.parametrize(
    "update",
    [
        lambda kept, low: kept.mul_(low).add_(NEW, alpha=1 - low),
        lambda kept, low: kept.lerp_(NEW.data, 1 - low),
        of_products,
        of_data,
    ],
)
def test_the_weight_of_the_new_value(update: Callable[[Tensor, float], object]) -> None:
    """However it is passed; 0.95 or more counts."""
    kept = torch.zeros(4, 3)

    def step(low: float) -> None:
        with torch.no_grad():
            update(kept, low)

    (found,) = facts_of(SwappedAverage, lambda: step(0.01))

    assert found.weight == pytest.approx(0.99)
    assert not facts_of(SwappedAverage, lambda: step(0.99))
    assert not facts_of(SwappedAverage, lambda: step(0.5))


def test_the_average_may_require_grad() -> None:
    """As that of a copied model does."""
    kept = nn.Parameter(torch.zeros(4, 3))

    def step() -> None:
        with torch.no_grad():
            kept.lerp_(NEW, 0.99)

    assert len(facts_of(SwappedAverage, step)) == 1


def test_what_is_no_average_of_a_parameter() -> None:
    """Such as a step of momentum."""
    velocity, gradient = torch.zeros(4, 3), torch.ones(4, 3)

    assert not facts_of(SwappedAverage, lambda: velocity.mul_(0.01).add_(gradient, alpha=0.99))
    assert not facts_of(SwappedAverage, lambda: velocity.mul_(0.9).add_(NEW.data, alpha=1.0))
