"""Which inputs were divided by 255 although they lay between 0 and 1."""

from collections.abc import Callable

import pytest
import torch
from argument_facts import facts_of
from torch import Tensor, nn

from gradinspect.checks.evidence.arguments import rescaled_inputs
from gradinspect.checks.facts.values import RescaledInputs

LAYER, CONV = nn.Linear(64, 2), nn.Conv2d(3, 2, 3)


def raw() -> Tensor:
    """Return bytes, as floats."""
    return torch.randint(0, 256, (6, 64)).float()


def pixels() -> Tensor:
    """Return them between 0 and 1."""
    return raw() / 255


def pictures() -> Tensor:
    """Return the same with three channels."""
    return torch.randint(0, 256, (6, 3, 5, 5)) / 255


MEAN = torch.tensor([0.2, 0.5, 0.8])[:, None, None]


@pytest.mark.parametrize(
    "step",
    [
        lambda: LAYER(pixels() / 255),
        lambda: LAYER(pixels().mul(1 / 255)),
        lambda: LAYER(pixels().div(255.0).view(6, 64) - 0.1),
        lambda: CONV((pictures() / 255 - MEAN) / 0.22),
    ],
)
def test_a_second_division(step: Callable[[], Tensor]) -> None:
    """Also where a mean is subtracted then, of each channel."""
    (found,) = facts_of(RescaledInputs, step)

    assert found.num_calls == 6
    assert 0.9 < found.most <= 1
    assert found.spread < 0.02


@pytest.mark.parametrize(
    "step",
    [
        lambda: LAYER(pixels()),
        lambda: LAYER(raw().div_(255)),
        lambda: LAYER(pixels() + torch.rand(6, 64) / 255),
        lambda: LAYER((pixels() > 0.5).float() / 255),  # a mask, of which only the ends are there
        lambda: LAYER(pixels() / 256),
        lambda: LAYER(pixels() / 255 * 255),
        lambda: LAYER(raw() / (255 * 255)),
    ],
)
def test_one_division_is_enough(step: Callable[[], Tensor]) -> None:
    """And noise, masks, and what is scaled up again are none."""
    assert facts_of(RescaledInputs, step) == []


def test_few_calls_and_large_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first say nothing; what is too large is counted."""
    assert facts_of(RescaledInputs, lambda: LAYER(pixels() / 255), calls=2) == []
    monkeypatch.setattr(rescaled_inputs, "MOST_ELEMENTS", 5)

    assert facts_of(RescaledInputs, lambda: LAYER(pixels() / 255), notes=1) == []
