"""Which sums of numbers add a sum over a batch to a mean, or the same term again."""

from collections.abc import Callable

import pytest
import torch
from argument_facts import facts_of
from torch import Tensor, nn

from gradinspect.checks.evidence.objectives.added_terms import MOST_TERMS
from gradinspect.checks.facts.objectives import RepeatedTerm, UnlikeReductions

F = nn.functional
LAYER, X = nn.Linear(3, 3), torch.randn(8, 3)


@pytest.mark.parametrize(
    ("loss", "count"),
    [
        (lambda h: F.mse_loss(h, X) + h.square().sum(), 1),
        (lambda h: -0.5 * h.sum() - 2 * F.mse_loss(h, X), 1),
        (lambda h: F.mse_loss(h, X, reduction="sum") + h.abs().mean(), 1),
        (lambda h: h.square().sum(1).sum() + 1.0 + h.abs().mean(), 1),
        (lambda h: F.mse_loss(h, X, reduction="sum") + h.square().sum(), 0),
        (lambda h: F.mse_loss(h, X) + h.square().sum() / 8, 0),
        (lambda h: F.mse_loss(h, X) + (h.square() / 8).sum(), 0),
        (lambda h: 0.1 * F.mse_loss(h, X) + h.square().sum() / 8, 0),
        (lambda h: F.mse_loss(h, X) + 0.01 * h.abs().sum(), 0),
        (lambda h: F.mse_loss(h, X) + h.abs().sum() / torch.tensor(8.0), 0),
        (lambda h: 24 * F.mse_loss(h, X) + h.abs().sum(), 0),
        (lambda h: F.mse_loss(h, X) + h.square().sum(1).mean(), 0),
        (lambda h: F.mse_loss(h, X) + (h.softmax(1).mean(0) ** 2).sum(), 0),  # one average for the batch
        (lambda h: F.mse_loss(h, X) + LAYER.weight.square().sum(), 0),  # a penalty
        (lambda h: F.mse_loss(h, X) + h[:2].square().sum(), 0),  # of too few
        (lambda h: F.mse_loss(h, X) + h.square().detach().sum(), 0),
        (lambda h: F.mse_loss(h, X, reduction="none").mean() + h.exp().prod(), 0),
    ],
)
def test_a_sum_over_the_rows_of_a_mean(loss: Callable[[Tensor], Tensor], count: int) -> None:
    """Of the same batch, with about the same weight."""
    assert [one.rows for one in facts_of(UnlikeReductions, lambda: loss(LAYER(X)))] == [8] * count


@pytest.mark.parametrize(
    ("first", "second", "count"),
    [
        (lambda h: h.square().mean(), lambda h: h.square().mean(), 1),
        (lambda h: F.mse_loss(h, X), lambda h: F.mse_loss(h, X), 1),
        (lambda h: F.mse_loss(h, X), lambda h: F.mse_loss(h, X + 1), 0),
        (lambda h: h.square().mean(), lambda h: h.tanh().mean(), 0),
        (lambda h: h.square().mean(), lambda h: 2 * h.square().mean(), 0),
        (lambda h: F.mse_loss(h, h.tanh()), lambda h: F.mse_loss(h.tanh(), h), 0),
        (lambda h: F.dropout(h, 0.5).sum(), lambda h: F.dropout(h, 0.5).sum(), 0),
        (lambda h: (h * 0).mean(), lambda h: (h * 0).mean(), 0),
        (lambda _h: LAYER.weight.sum(), lambda _h: LAYER.bias.sum(), 0),
        (lambda h: h.square().mean(), lambda h: h.square().mean(1).mean(), 0),
    ],
)
def test_a_term_that_is_computed_again(
    first: Callable[[Tensor], Tensor], second: Callable[[Tensor], Tensor], count: int
) -> None:
    """By the same functions, from the same tensors, with the same value."""

    def step() -> Tensor:
        h = LAYER(X)
        one = 0 + first(h)
        loss = one + h.abs().amax()
        loss += second(h)
        return loss

    assert len(facts_of(RepeatedTerm, step)) == count


def test_what_one_line_computes_twice_is_a_loop() -> None:
    """Nothing is said of it."""
    assert not facts_of(RepeatedTerm, lambda: sum(LAYER(X).square().mean() for _ in range(2)))


def test_a_sum_of_too_many_terms_is_counted() -> None:
    """Only the first are looked at."""

    def step() -> Tensor:
        terms = [LAYER.weight.sum() for _ in range(MOST_TERMS + 2)]
        total = sum(terms)
        return total + LAYER.bias.sum()

    assert not facts_of(RepeatedTerm, step, calls=1, notes=1)
