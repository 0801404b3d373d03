"""Cosines that are given to a cross entropy."""

from collections.abc import Callable
from math import exp, log

import pytest
import torch
from argument_facts import facts_of
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from gradinspect.checks.evidence.objectives.close_scores import LEAST_CALLS
from gradinspect.checks.facts.targets import CloseScores

Scores = Callable[[Tensor, Tensor], Tensor]


def compared(scores_of: Scores, classes: int = 30) -> list[CloseScores]:
    """Compare encoded examples with a vector for each class."""
    encoder, vectors = nn.Linear(6, 5), nn.Parameter(torch.randn(classes, 5))
    y = torch.arange(12) % classes

    def step() -> None:
        cross_entropy(scores_of(encoder(torch.randn(12, 6)), vectors), y)

    return facts_of(CloseScores, step, calls=LEAST_CALLS)


@pytest.mark.parametrize(
    "scores_of",
    [
        lambda a, b: normalize(a) @ normalize(b).T,
        lambda a, b: 1.0 * nn.functional.linear(normalize(a), normalize(b)),
    ],
)
def test_cosines_are_too_close(scores_of: Scores) -> None:
    """Also those that a scale of 1 leaves as they are."""
    (found,) = compared(scores_of)

    assert found.num_classes == 30
    assert found.floor == pytest.approx(log(1 + 29 * exp(-2)))


@pytest.mark.parametrize(
    "scores_of",
    [
        lambda a, b: normalize(a) @ normalize(b).T / 0.1,
        lambda a, b: a @ normalize(b).T,
        lambda a, b: 0.01 * a @ b.T,
    ],
)
def test_a_temperature_and_vectors_of_any_length_spread_them(scores_of: Scores) -> None:
    """What is small now may grow."""
    assert compared(scores_of) == []


def test_two_classes_are_far_enough_apart() -> None:
    """The loss can fall far below that of guessing."""
    assert compared(lambda a, b: normalize(a) @ normalize(b).T, classes=2) == []
