"""Which models read the token that they are to predict."""

from collections.abc import Callable

import pytest
import torch
from argument_facts import facts_of
from torch import Tensor, nn
from torch.nn import functional

from gradinspect.checks.facts.targets import NextTokenRead

EMBED, HEAD = nn.Embedding(30, 8), nn.Linear(8, 30)
LAYER = nn.TransformerEncoderLayer(8, 2, 8, dropout=0.0, batch_first=True)
LAST = nn.TransformerEncoderLayer(8, 2, 8, dropout=0.0)
BOTH = nn.LSTM(8, 4, batch_first=True, bidirectional=True)
HIDDEN = torch.ones(11, 11, dtype=torch.bool).triu(1)
ATTEND = functional.scaled_dot_product_attention


def weights(x: Tensor) -> Tensor:
    """Compute those of an attention, without a mask."""
    return (x @ x.transpose(1, 2)).softmax(-1)


def heads(x: Tensor) -> Tensor:
    """Split the features into two heads."""
    return x.view(4, 11, 2, 4).transpose(1, 2)


def prefix() -> Tensor:
    """Show the first four places to each other."""
    mask = HIDDEN.clone()
    mask[:4, :4] = False
    return mask


@pytest.mark.parametrize(
    ("model", "op"),
    [
        (LAYER, ""),
        (lambda x: LAST(x.transpose(0, 1)).transpose(0, 1), ""),
        (lambda x: ATTEND(x, x, x), ""),
        (lambda x: ATTEND(heads(x), heads(x), heads(x)).transpose(1, 2).reshape(4, 11, 8), ""),
        (lambda x: ATTEND(x, x, x, attn_mask=HIDDEN), ""),  # the wrong way round
        (lambda x: LAYER(x, src_mask=~HIDDEN), ""),
        (lambda x: ATTEND(x, x, x, attn_mask=torch.zeros(11, 11)), ""),
        (lambda x: weights(x) @ x, ""),
        (lambda x: torch.bmm(functional.dropout(weights(x), 0.0), x), ""),
        (lambda x: torch.einsum("bqk,bkd->bqd", weights(x), x), ""),
        (lambda x: torch.einsum("bqk, bkd -> bqd", torch.einsum("bqd,bkd->bqk", x, x).softmax(-1), x), ""),
        (lambda x: BOTH(x)[0].relu(), "LSTM"),
        (LAST, None),  # along the batch: another mistake
        (lambda x: LAYER(x, src_mask=HIDDEN), None),
        (lambda x: LAYER(x, src_mask=prefix()), None),
        (lambda x: ATTEND(x, x, x, attn_mask=~HIDDEN), None),
        (lambda x: ATTEND(x, x, x, is_causal=True), None),
        (lambda x: ATTEND(x, x, x, attn_mask=torch.zeros(11, 11).masked_fill(HIDDEN, -torch.inf)), None),
        (lambda x: ATTEND(x, torch.randn(4, 11, 8), x), None),  # keys of other tokens
        (lambda x: weights(x).tril() @ x, None),
        (lambda x: torch.einsum("bqk,bkd->bqd", weights(x).tril(), x), None),
        (lambda x: torch.einsum("bkq,bkd->bqd", weights(x), x), None),  # weights of other places
        (lambda x: x @ (x.transpose(1, 2) @ x), None),  # no weights
        (lambda x: BOTH(x)[0][..., :4].repeat(1, 1, 2), None),  # one of its directions
        (lambda x: x, None),
    ],
)
def test_what_reads_the_next_place(model: Callable[[Tensor], Tensor], op: str | None) -> None:
    """However the attention is written, and whatever kind of mask it has."""

    def step() -> Tensor:
        ids = torch.randint(30, (4, 12))
        return functional.cross_entropy(HEAD(model(EMBED(ids[:, :-1]))).flatten(0, 1), ids[:, 1:].flatten())

    assert [one.op for one in facts_of(NextTokenRead, step)] == ([] if op is None else [op])


@pytest.mark.parametrize(
    ("labels", "count"),
    [(lambda ids: ids.roll(-1, 1), 0), (lambda ids: ids, 0), (lambda ids: ids % 7, 0)],
    ids=["rolled", "same", "tags"],
)
def test_other_labels_may_be_read(labels: Callable[[Tensor], Tensor], count: int) -> None:
    """Those that are no next tokens; a sequence that is rolled goes on at its beginning."""

    def step() -> Tensor:
        ids = torch.randint(30, (4, 12))
        return functional.cross_entropy(HEAD(LAYER(EMBED(ids))).flatten(0, 1), labels(ids).flatten())

    assert len(facts_of(NextTokenRead, step)) == count


def test_as_many_sequences_as_places() -> None:
    """Then which axis is which is known from how often they have changed places."""

    def step(layer: nn.Module) -> Tensor:
        ids = torch.randint(30, (11, 12))
        scores = HEAD(layer(layer(EMBED(ids[:, :-1]))))
        return functional.cross_entropy(scores.flatten(0, 1), ids[:, 1:].flatten())

    assert len(facts_of(NextTokenRead, lambda: step(LAYER))) == 1
    assert facts_of(NextTokenRead, lambda: step(LAST)) == []
