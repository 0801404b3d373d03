"""Targets that the output does not come near."""

import pytest
import torch
from argument_facts import facts_of
from torch import nn
from torch.nn import functional

from gradinspect.checks.evidence.targets import far_targets
from gradinspect.checks.facts.targets import FarTargets

CALLS = far_targets.LEAST_CALLS


def trained(offset: float, rate: float = 1e-3, noise: float = 1.0, calls: int = CALLS) -> list[FarTargets]:
    """Train a layer with Adam on targets around a number, and return what is said of them."""
    layer = nn.Linear(3, 1)
    optimizer = torch.optim.Adam(layer.parameters(), rate)

    def step() -> None:
        x = torch.randn(16, 3)
        optimizer.zero_grad()
        functional.mse_loss(layer(x), offset + noise * torch.randn(16, 1)).backward()
        optimizer.step()

    return facts_of(FarTargets, step, calls=calls)


@pytest.mark.parametrize("offset", [5_000.0, -80_000.0])
def test_targets_of_thousands_are_out_of_reach(offset: float) -> None:
    """On either side of 0."""
    (found,) = trained(offset)

    assert found.target == pytest.approx(offset, rel=0.01)
    assert abs(found.last) < 10
    assert found.num_calls == CALLS


def test_what_comes_nearer_is_in_reach() -> None:
    """With a large rate the output would be there soon; small targets and those around 0 are, too."""
    assert trained(5_000.0, rate=10.0) == []
    assert trained(5_000.0, rate=500.0) == []
    assert trained(50.0) == []
    assert trained(0.0, noise=5_000.0) == []
    assert trained(5_000.0, calls=CALLS - 1) == []


def test_a_difference_is_compared_as_a_loss_is() -> None:
    """Not that of two outputs, nor of two shapes."""
    layer = nn.Linear(3, 1)
    far, x = torch.full((16, 1), 9_000.0), torch.randn(16, 3)

    assert len(facts_of(FarTargets, lambda: (layer(x) - far).square().mean(), calls=CALLS)) == 1
    assert len(facts_of(FarTargets, lambda: (far - layer(x)).abs().mean(), calls=CALLS)) == 1
    assert facts_of(FarTargets, lambda: layer(x) - (far + layer(x)), calls=CALLS) == []
    assert facts_of(FarTargets, lambda: layer(x) - far[:1], calls=CALLS) == []
    assert facts_of(FarTargets, lambda: layer(x) - 9_000.0, calls=CALLS) == []
