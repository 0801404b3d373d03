"""Losses that ignore what was hidden from a model."""

from collections.abc import Callable

import torch
from argument_facts import facts_of
from torch import nn
from torch.nn import functional

from gradinspect.checks.evidence.objectives.hidden_tokens import LEAST_CALLS
from gradinspect.checks.facts.targets import HiddenIgnored

HIDDEN = torch.zeros(4, 8, dtype=torch.bool)
HIDDEN[:, 3] = HIDDEN[1, 5] = True


def asked(
    labels_of: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], hidden: torch.Tensor = HIDDEN
) -> list[HiddenIgnored]:
    """Train a model that is given ids with hidden places, on some labels."""
    table, head = nn.Embedding(10, 6), nn.Linear(6, 10)

    def step() -> None:
        ids = torch.randint(1, 10, (4, 8))
        scores = head(table(ids.masked_fill(hidden, 0)))
        functional.cross_entropy(scores.flatten(0, 1), labels_of(ids, hidden).flatten())

    return facts_of(HiddenIgnored, step, calls=LEAST_CALLS)


def test_labels_of_what_is_given_are_found() -> None:
    """With the token that stands for what is hidden."""
    (found,) = asked(lambda ids, hidden: ids.masked_fill(hidden, -100))

    assert (found.token, found.num_calls) == (0, LEAST_CALLS)


def test_labels_of_what_is_hidden_are_meant() -> None:
    """And so are those of all tokens, and of others than are given."""
    assert asked(lambda ids, hidden: ids.masked_fill(~hidden, -100)) == []
    assert asked(lambda ids, _hidden: ids) == []
    assert asked(lambda ids, hidden: ((ids + 1) % 10).masked_fill(hidden, -100)) == []


def test_padding_is_ignored_as_well() -> None:
    """It stands at the end of a row."""
    padding = torch.arange(8) >= torch.tensor([[5], [8], [6], [8]])

    assert asked(lambda ids, hidden: ids.masked_fill(hidden, -100), padding) == []
