"""Which weights of classes have the proportions of the labels."""

import pytest
import torch
from argument_facts import facts_of
from torch import Tensor, nn
from torch.nn import functional

from gradinspect.checks.evidence.targets import class_weights
from gradinspect.checks.facts.targets import WeightsOfFrequency

LABELS = torch.tensor([0] * 40 + [1] * 8 + [2] * 4)
COUNTS = torch.tensor([40.0, 8.0, 4.0])
LAYER = nn.Linear(4, 3)
POSITIVE = torch.tensor([1.0] * 7 + [0.0] * 53)[:, None]
ODDS = torch.tensor([7 / 53])


def weighed(weight: Tensor | None, labels: Tensor = LABELS, calls: int = 6) -> list[WeightsOfFrequency]:
    """Call cross_entropy with weights."""
    return facts_of(
        WeightsOfFrequency,
        lambda: functional.cross_entropy(LAYER(torch.randn(len(labels), 4)), labels, weight=weight),
        calls,
    )


def positive(weight: Tensor) -> list[WeightsOfFrequency]:
    """Call binary_cross_entropy_with_logits with a weight of the positive class."""
    return facts_of(
        WeightsOfFrequency,
        lambda: functional.binary_cross_entropy_with_logits(
            LAYER(torch.randn(60, 4))[:, :1], POSITIVE, pos_weight=weight
        ),
    )


@pytest.mark.parametrize("weight", [COUNTS, COUNTS / 52, COUNTS / COUNTS.min(), COUNTS * torch.tensor([1, 1.2, 1])])
def test_weights_that_grow_with_the_counts(weight: Tensor) -> None:
    """Whatever they are divided by."""
    (found,) = weighed(weight)

    assert (found.frequent, found.rare, found.num_labels, found.is_positive) == (0, 2, 312, False)
    assert round(found.frequent_share, 2) == 0.77


@pytest.mark.parametrize("weight", [1 / COUNTS, 52 / COUNTS, COUNTS.rsqrt(), torch.ones(3), COUNTS.sqrt(), None])
def test_other_weights(weight: Tensor | None) -> None:
    """The inverse, the same for all, or of another proportion."""
    assert weighed(weight) == []


def test_what_the_labels_must_show() -> None:
    """A few hundred, some of each class, and not about as many of each; -100 is no class."""
    even = torch.arange(51) % 3

    assert weighed(COUNTS, calls=3) == []
    assert weighed(COUNTS, LABELS[:48]) == []
    assert weighed(torch.tensor([17.0, 17.0, 17.0]), even) == []
    assert len(weighed(COUNTS, torch.cat((LABELS, torch.tensor([-100]))))) == 1


def test_the_weight_of_positive_labels() -> None:
    """Their odds, or their share; the inverse and a number that was written by hand are on purpose."""
    (found,) = positive(ODDS)

    assert (found.frequent, found.rare, found.frequent_weight, found.is_positive) == (0, 1, 1.0, True)
    assert len(positive(torch.tensor([7 / 60]))) == 1
    assert positive(1 / ODDS) == positive(torch.tensor([0.12])) == positive(ODDS * 2) == []


def test_weights_that_change_are_not_judged() -> None:
    """As where a batch has its own."""
    weights = iter([COUNTS, COUNTS / 2] * 3)

    assert not facts_of(
        WeightsOfFrequency,
        lambda: functional.cross_entropy(LAYER(torch.randn(52, 4)), LABELS, weight=next(weights)),
    )


def test_large_batches_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not read."""
    monkeypatch.setattr(class_weights, "MOST_ELEMENTS", 5)

    assert not facts_of(
        WeightsOfFrequency,
        lambda: functional.cross_entropy(LAYER(torch.randn(52, 4)), LABELS, weight=COUNTS),
        notes=1,
    )
