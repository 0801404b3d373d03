"""Which losses are given labels first and scores second."""

import pytest
import torch
from argument_facts import facts_of
from torch import Tensor, nn
from torch.nn import functional

from gradinspect.checks.evidence.targets import exchanged
from gradinspect.checks.facts.targets import ExchangedArguments

LAYER = nn.Linear(4, 3)
LABELS = functional.one_hot(torch.arange(6) % 3, 3).float()
BCE = "binary_cross_entropy_with_logits"


def scores() -> Tensor:
    """Return the output of a model."""
    return LAYER(torch.randn(6, 4))


@pytest.mark.parametrize("loss", [BCE, "cross_entropy"])
def test_labels_in_the_place_of_scores(loss: str) -> None:
    """By place and by name; in the right order there is nothing."""
    of = getattr(functional, loss)

    assert [one.loss for one in facts_of(ExchangedArguments, lambda: of(LABELS, scores()))] == [loss]
    assert [one.num_calls for one in facts_of(ExchangedArguments, lambda: of(target=scores(), input=LABELS))] == [6]
    assert facts_of(ExchangedArguments, lambda: of(scores(), LABELS)) == []


def test_probabilities_and_labels_that_learn_are_in_their_place() -> None:
    """Known scores are no labels, and a target may have a graph where the input has one, or be a leaf."""
    soft = nn.Parameter(torch.rand(6, 3))
    of = functional.binary_cross_entropy_with_logits

    assert facts_of(ExchangedArguments, lambda: of(torch.randn(6, 3), scores().sigmoid())) == []
    assert facts_of(ExchangedArguments, lambda: of(scores(), scores().sigmoid())) == []
    assert facts_of(ExchangedArguments, lambda: of(LABELS, soft)) == []


def test_one_call_in_the_right_order_is_enough() -> None:
    """The line is used for both."""
    pairs = iter([(LABELS, scores()), (scores(), LABELS), (LABELS, scores())])

    assert facts_of(ExchangedArguments, lambda: functional.cross_entropy(*next(pairs)), calls=3) == []


def test_what_is_too_large_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not read."""
    monkeypatch.setattr(exchanged, "MOST_ELEMENTS", 5)

    assert facts_of(ExchangedArguments, lambda: functional.cross_entropy(LABELS, scores()), notes=1) == []
