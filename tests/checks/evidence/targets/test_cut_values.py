"""Which targets have lost their fractions."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from argument_facts import facts_of
from torch import Tensor, nn
from torch.nn import functional

from gradinspect.checks.facts.targets import CutTargets

LAYER = nn.Linear(4, 1)
SMALL = torch.rand(32)
VALUES: Any = np.linspace(-0.9, 0.9, 32)


def loss(target: Tensor) -> Tensor:
    """Compare some scores with targets."""
    return functional.mse_loss(LAYER(torch.randn(len(target), 4)).squeeze(1), target)


@pytest.mark.parametrize(
    ("target", "count"),
    [
        (lambda: SMALL.long().float(), 1),
        (lambda: SMALL.to(torch.int32).double().float(), 1),
        (lambda: SMALL.type(torch.int64)[torch.randperm(32)][torch.arange(32)].double().float(), 1),
        (lambda: torch.tensor(SMALL.tolist(), dtype=torch.long).float(), 1),
        (lambda: torch.tensor(VALUES, dtype=torch.long).float(), 1),
        (lambda: torch.stack([one.long() for one in SMALL]).float(), 1),
        (lambda: (SMALL - 0.5).mul(4).int().float(), 1),
        (lambda: (torch.rand(64) * 5).long().float(), 0),  # a draw of whole numbers
        (lambda: (SMALL * 255).long().float(), 0),  # little is lost
        (lambda: (SMALL * 255).long().float() / 255, 0),
        (lambda: (SMALL * 9).floor().long().float(), 0),  # nothing is
        (lambda: torch.tensor([1, 2, 3] * 9, dtype=torch.long).float(), 0),
        (lambda: torch.tensor([True] * 20, dtype=torch.long).float(), 0),
        (lambda: torch.full((32,), 0.5).long().float(), 0),  # they were all the same
        (lambda: SMALL[:9].long().float(), 1),
        (lambda: SMALL, 0),
    ],
)  # fmt: skip
def test_fractions_that_were_cut_off(target: Callable[[], Tensor], count: int) -> None:
    """Where they are large beside the spread of the values."""
    assert len(facts_of(CutTargets, lambda: loss(target()))) == count


def test_a_few_values_say_nothing() -> None:
    """Nor do two calls of a loss, nor classes."""
    few = torch.tensor([0.5, 1.2])

    assert not facts_of(CutTargets, lambda: loss(few.long().float()))
    assert not facts_of(CutTargets, lambda: loss(SMALL.long().float()), calls=2)
    assert not facts_of(CutTargets, lambda: functional.cross_entropy(torch.randn(32, 2), SMALL.long()))


def test_what_is_too_large_is_counted() -> None:
    """It is not looked at."""
    large = torch.rand(70_000)

    assert not facts_of(CutTargets, lambda: loss(large.long()[:8].float()), notes=1)


def test_the_range_of_all_casts_on_a_line_is_known() -> None:
    """From the least value to the largest."""
    (found,) = facts_of(CutTargets, lambda: loss(torch.linspace(-1.5, 2.5, 32).long().float()))

    assert (found.least, found.most, found.num_values, found.loss) == (-1.5, 2.5, 192, "mse_loss")
