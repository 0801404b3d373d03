"""How a loss reduces its elements, by place, by name and as old programs say it."""

import inspect
import itertools
import warnings

import pytest
import torch
from torch import nn

from gradinspect.checks.evidence.arguments.given import _PARAMETERS, reduction_of


@pytest.mark.parametrize("loss", _PARAMETERS)
def test_the_parameters_are_those_of_torch(loss: str) -> None:
    """In this order."""
    names = tuple(inspect.signature(getattr(nn.functional, loss)).parameters)
    assert names[: len(_PARAMETERS[loss])] == _PARAMETERS[loss]


@pytest.mark.parametrize(("average", "reduce"), list(itertools.product((None, True, False), repeat=2)))
def test_the_reduction_is_what_torch_computes(average: bool | None, reduce: bool | None) -> None:
    """By place and by name, with the old arguments and without."""
    x, y = torch.rand(4, 3), torch.rand(4, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        computed = nn.functional.mse_loss(x, y, average, reduce)
    kind = reduction_of("mse_loss", (x, y, average, reduce), {})
    assert kind == reduction_of("mse_loss", (x, y), {"size_average": average, "reduce": reduce})
    assert torch.equal(computed, nn.functional.mse_loss(x, y, reduction=kind))


def test_the_last_place_is_the_reduction() -> None:
    """Without an old argument it counts; a loss whose parameters are not known has it by name only."""
    x = torch.rand(4)
    assert reduction_of("binary_cross_entropy", (x, x, None, None, None, "sum"), {}) == "sum"
    assert reduction_of("huber_loss", (x, x, "none"), {}) == "none"
    assert reduction_of("gaussian_nll_loss", (x, x, x, True), {"reduction": "sum"}) == "sum"
    assert reduction_of("mse_loss", (x, x), {}) == "mean"
