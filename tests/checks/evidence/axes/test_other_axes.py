"""Which weights of attention add up to one along another axis than their product sums over."""

from collections.abc import Callable

import pytest
import torch
from argument_facts import facts_of
from torch import Tensor

from gradinspect.checks.facts.axes import OtherAxis

X = torch.randn(2, 6, 4, requires_grad=True)
MASK = torch.ones(6, 6).tril() == 0


def scores(x: Tensor = X) -> Tensor:
    """Compare each position with each."""
    return x @ x.transpose(-2, -1) / 2


def masked() -> Tensor:
    """Mask what comes later."""
    return torch.nn.functional.softmax(scores().masked_fill(MASK, float("-inf")), dim=1)


def dropped() -> Tensor:
    """Drop weights."""
    return torch.nn.functional.dropout(scores().softmax(-2), 0.1)


@pytest.mark.parametrize(
    ("weights", "count"),
    [
        (lambda: torch.softmax(scores(), -2), 1),
        (lambda: torch.softmax(torch.bmm(X, X.mT) * 0.5, dim=1), 1),
        (masked, 1),
        (dropped, 1),
        (lambda: torch.softmax(scores(), dim=-1), 0),
        (lambda: torch.softmax(scores(), dim=-2).transpose(-2, -1), 0),  # the product sums over the queries
        (lambda: torch.softmax(scores() @ X, dim=-2).mT, 0),  # clusters of positions
        (lambda: torch.softmax(torch.randn(6, 6, requires_grad=True), dim=-2), 0),  # a table that learns
    ],
)
def test_weights_of_a_sequence_with_itself(weights: Callable[[], Tensor], count: int) -> None:
    """Only where a product has made the scores, and nothing moves their axes."""

    def step() -> Tensor:
        return weights() @ torch.ones(weights().shape[-1], 3)

    assert len(facts_of(OtherAxis, step)) == count


def test_weights_beside_the_values_are_right() -> None:
    """As a second factor their rows are summed over."""
    assert not facts_of(OtherAxis, lambda: torch.ones(3, 6) @ torch.softmax(scores(), dim=-2))


def test_slots_are_shared_out_on_purpose() -> None:
    """Three slots compete for six positions."""
    slots = torch.randn(2, 3, 4, requires_grad=True)
    assert not facts_of(OtherAxis, lambda: torch.softmax(slots @ X.mT, dim=-2) @ X)
