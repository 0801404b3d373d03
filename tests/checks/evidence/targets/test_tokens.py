"""At which distance a model is asked for tokens."""

from collections.abc import Callable

import pytest
import torch
from argument_facts import facts_of
from torch import Tensor, nn
from torch.nn import functional

from gradinspect.checks.facts.targets import TokenOffset

EMBED, HEAD = nn.Embedding(30, 8), nn.Linear(8, 30)
RNN, BOTH = nn.GRU(8, 8, batch_first=True), nn.GRU(8, 4, batch_first=True, bidirectional=True)


def scored(ids: Tensor) -> Tensor:
    """Score with a model that sees no later token."""
    return HEAD(RNN(EMBED(ids))[0])


def attended(ids: Tensor) -> Tensor:
    """Do so by an attention."""
    x = EMBED(ids)
    return HEAD(functional.scaled_dot_product_attention(x, x, x, is_causal=True))


def compared(scores: Tensor, target: Tensor) -> Tensor:
    """Compare what is flattened."""
    return functional.cross_entropy(scores.reshape(-1, 30), target.reshape(-1))


def batch() -> Tensor:
    """Draw ids."""
    return torch.randint(30, (4, 12))


@pytest.mark.parametrize(
    ("loss", "distance"),
    [
        (lambda b: compared(scored(b[:, :-1])[:, :-1], b[:, 2:]), 2),
        (lambda b: functional.cross_entropy(scored(b[:, :-2]).transpose(1, 2), b[:, 2:]), 2),
        (lambda b: compared(scored(b[:, :-3]), b[:, 3:]), 3),
        (lambda b: compared(scored(b)[:, 1:], b[:, :-1]), -1),
        (lambda b: compared(scored(b), b), 0),
        (lambda b: compared(attended(b), b), 0),
        (lambda b: compared(scored(b)[:, :-1], b[:, 1:]), None),
        (lambda b: compared(scored(b[:, :-1]), b[:, 1:]), None),
        (lambda b: compared(scored(b)[:, 1:-1], b[:, 2:]), None),  # the first score is left out on purpose
        (lambda b: compared(scored(b)[..., 1:-1, :], b[:, 2:]), None),
        (lambda b: compared(scored(b)[:, 2:], b[:, 2:]), 0),
        (lambda b: compared(HEAD(BOTH(EMBED(b))[0]), b), None),  # sees later tokens
        (lambda b: compared(scored(b[:, 1:]), b[:, :-1]), None),  # a test of memory
        (lambda b: compared(scored(b), b % 7), None),
        (lambda b: compared(scored(b[:, :-2]), b[:, 2:]) + compared(scored(b[:, :-2]), b[:, 1:-1]), None),
    ],
)
def test_the_distance_is_read_from_the_ids(loss: Callable[[Tensor], Tensor], distance: int | None) -> None:
    """Whether data, scores or labels are shifted; that of one is right, and so is one of several."""
    found = [one.distance for one in facts_of(TokenOffset, lambda: loss(batch()))]

    assert found == ([] if distance is None else [distance])


def test_labels_that_are_left_out_say_nothing() -> None:
    """Those below 0, as of padding."""
    ids = batch()
    labels = ids[:, 2:].clone()
    labels[:, -4:] = -100

    assert [one.distance for one in facts_of(TokenOffset, lambda: compared(scored(ids[:, :-2]), labels))] == [2]


def test_equal_tokens_have_no_distance() -> None:
    """All distances fit."""
    ids = torch.full((4, 12), 3)

    assert not facts_of(TokenOffset, lambda: compared(scored(ids), ids))
