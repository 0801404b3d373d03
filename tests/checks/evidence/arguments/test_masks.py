"""Which masks hide the tokens and leave the padding."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from gradinspect.checks.evidence.values.calls import TorchCallLog
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.values import InvertedMask
from gradinspect.recording.recorder import Recorder

EMBED = nn.Embedding(9, 8)
IDS = torch.tensor([[3, 5, 0, 0], [4, 1, 7, 0], [2, 2, 6, 8]])


def inverted(use: Callable[[Tensor, Tensor], object], ids: Tensor = IDS, calls: int = 3) -> list[InvertedMask]:
    """Embed ids and use them on one line, some times, and return what is said of the masks."""
    with Recorder() as recorder, TorchCallLog(recorder, Dataflow(recorder)) as log:
        for _ in range(calls):
            use(ids, EMBED(ids))
        assert not list(recorder.errors.notes())
        return [one for one in log.arguments.facts(lambda _number: None) if isinstance(one, InvertedMask)]


def fill(scores: Tensor, mask: Tensor, value: float = float("-inf")) -> Tensor:
    """Hide positions from an attention of each to each."""
    return (scores @ scores.transpose(1, 2)).masked_fill(mask[:, None, :], value)


def attend(x: Tensor, mask: Tensor) -> Tensor:
    """Attend to some positions."""
    return functional.scaled_dot_product_attention(x, x, x, attn_mask=mask[:, None, :])


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        (lambda ids, x: fill(x, ids != 0), lambda ids, x: fill(x, ids == 0)),
        (lambda ids, x: fill(x, ~(ids == 0), -1e9), lambda ids, x: fill(x, ids != 0, 1.0)),
        (lambda ids, x: attend(x, ids == 0), lambda ids, x: attend(x, ids != 0)),
        (
            lambda ids, x: torch.where((ids == 0)[..., None], x, -1e9).amax(1),
            lambda ids, x: torch.where((ids != 0)[..., None], x, -1e9).amax(1),
        ),
    ],
)
def test_only_padding_is_left(
    wrong: Callable[[Tensor, Tensor], object], right: Callable[[Tensor, Tensor], object]
) -> None:
    """Whatever hides, in each call with padding, and in no fewer than three."""
    (found,) = inverted(wrong)

    assert (found.token, found.num_calls) == (0, 3)
    assert inverted(wrong, IDS.flip(1)) != []
    assert inverted(right) == inverted(wrong, calls=2) == inverted(wrong, IDS[2:]) == []


def with_token(x: Tensor, mask: Tensor, *, is_last: bool = False) -> Tensor:
    """Hide positions from an attention of each to each, and never a class token ahead of them, or behind them."""
    parts = [mask.new_zeros(len(mask), 1), mask]
    hidden = torch.cat(parts[::-1] if is_last else parts, 1)
    return torch.zeros(len(x), 5, 5).masked_fill(hidden[:, None, :], float("-inf"))


@pytest.mark.parametrize("is_last", [False, True])
def test_a_class_token_has_no_id(*, is_last: bool) -> None:
    """What the mask says of the others is looked at; a mask of much more than the ids is about something else."""
    found = inverted(lambda ids, x: with_token(x, ids != 0, is_last=is_last))

    assert [(one.token, one.num_calls) for one in found] == [(0, 3)]
    assert inverted(lambda ids, x: with_token(x, ids == 0, is_last=is_last)) == []
    assert (
        inverted(lambda ids, _: torch.zeros(3, 9, 9).masked_fill(functional.pad(ids != 0, (5, 0))[:, None], -1e9)) == []
    )


def test_a_token_that_all_may_read_is_no_padding() -> None:
    """It is once in each row, or between others; and what was not embedded has no known ids."""
    start = torch.tensor([[1, 5, 6], [1, 2, 7]])
    between = torch.tensor([[3, 1, 1, 5], [4, 1, 7, 8], [2, 3, 6, 8]])

    assert inverted(lambda ids, x: fill(x, ids != 1), start) == []
    assert inverted(lambda ids, x: fill(x, ids != 1), between) == []
    assert inverted(lambda ids, x: fill(x[:, 1:], ids[:, 1:] != 0)) == []
    assert inverted(lambda ids, x: fill(x, ids < 0)) == []
