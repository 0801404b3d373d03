"""Which tables give all places of a sequence one entry."""

from collections.abc import Callable
from itertools import count

import pytest
import torch
from argument_facts import facts_of
from torch import Tensor, nn

from gradinspect.checks.facts.axes import SamePlaces

WORDS, TABLE, KINDS = nn.Embedding(20, 8), nn.Embedding(16, 8), nn.Embedding(2, 8)
TOKENS, CLASSES = torch.arange(24).view(4, 6) % 20, torch.zeros(4, 1, dtype=torch.long)
TIMES = count()


def told_apart() -> Tensor:
    """Add positions, and the same class for all."""
    return WORDS(TOKENS) + TABLE(torch.arange(6)) + TABLE(torch.tensor(3))


@pytest.mark.parametrize(
    ("step", "values"),
    [
        (lambda: WORDS(TOKENS) + TABLE(torch.tensor(5)), [5]),
        (lambda: WORDS(TOKENS) + TABLE(torch.zeros_like(TOKENS)), [0]),
        (lambda: WORDS(TOKENS) + TABLE(torch.full((6,), 5).unsqueeze(0).expand(4, 6)), [5]),
        (lambda: WORDS(TOKENS) + TABLE(torch.arange(6)), []),
        (lambda: WORDS(TOKENS) + KINDS(torch.zeros_like(TOKENS)), []),  # a kind of segment
        (lambda: WORDS(TOKENS) + TABLE(CLASSES), []),  # data
        (lambda: WORDS(TOKENS) + TABLE(torch.full((4, 1), next(TIMES) % 16)), []),  # a time
        (lambda: WORDS(TOKENS) + WORDS(torch.zeros(4, 1, dtype=torch.long)), []),  # the first word
        (lambda: WORDS(TOKENS) + TABLE(torch.tensor([3] * 4)).unsqueeze(1), []),  # a class for each example
        (told_apart, []),
        (lambda: TABLE(torch.tensor(5)), []),  # no sequence
    ],
)
def test_one_entry_for_all_places(step: Callable[[], object], values: list[int]) -> None:
    """Where the program makes an index of one value, and no data is looked up in the same table."""
    found = facts_of(SamePlaces, lambda: [step() for _ in range(3)])

    assert [one.value for one in found] == values
