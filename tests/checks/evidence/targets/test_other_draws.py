"""Which scores belong to another draw than that which was taken."""

from collections.abc import Callable

import pytest
import torch
from argument_facts import facts_of
from torch import Tensor, nn
from torch.distributions import Categorical

from gradinspect.checks.facts.targets import OtherDraw

POLICY = nn.Linear(4, 3)


def other(dist: Categorical) -> Tensor:
    """Score a second draw."""
    taken = dist.sample()
    return dist.log_prob(dist.sample()) * (taken == 1)


def taken(dist: Categorical) -> Tensor:
    """Score the draw that is taken."""
    action = dist.sample()
    return dist.log_prob(action) * (action == 1)


def both(dist: Categorical) -> Tensor:
    """Score two draws."""
    first, second = dist.sample(), dist.sample()
    return dist.log_prob(first) * (first == 1) + dist.log_prob(second) * (second == 1)


@pytest.mark.parametrize(("score", "count"), [(other, 1), (taken, 0), (both, 0)])
def test_a_draw_that_only_its_score_reads(score: Callable[[Categorical], Tensor], count: int) -> None:
    """While another one of the same probabilities goes elsewhere."""

    def step() -> None:
        score(Categorical(logits=POLICY(torch.randn(5, 4))))

    assert len(facts_of(OtherDraw, step)) == count
