"""Which adversaries are told the same."""

import pytest
import torch
from argument_facts import facts_of
from torch import Tensor, nn
from torch.nn import functional

from gradinspect.checks.facts.targets import AgreeingAdversaries

MAKER, JUDGE, OTHER = nn.Linear(4, 2), nn.Linear(2, 1), nn.Linear(2, 1)


def told(scores: Tensor, label: float) -> Tensor:
    """Compare scores with one label."""
    return functional.binary_cross_entropy_with_logits(scores, torch.full_like(scores, label))


def step(real: float, fake: float, own: float, judge: nn.Module = JUDGE, *, is_cut: bool = True) -> None:
    """Make the three losses of two adversaries."""
    made = MAKER(torch.randn(8, 4))
    told(JUDGE(torch.randn(8, 2)), real)
    told(JUDGE(made.detach() if is_cut else made), fake)
    told(judge(made), own)


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        ((1.0, 0.0, 0.0), [(True, 0.0)]),
        ((0.0, 1.0, 1.0), [(True, 1.0)]),
        ((1.0, 1.0, 1.0), [(False, 1.0)]),
        ((1.0, 1.0, 0.0), [(False, 1.0)]),
        ((1.0, 0.0, 1.0), []),
        ((0.9, 0.0, 1.0), []),
        ((0.0, 1.0, 0.0), []),
    ],
)
def test_labels_must_be_opposites(labels: tuple[float, float, float], found: list[tuple[bool, float]]) -> None:
    """Of the generator, and of real examples."""
    facts = facts_of(AgreeingAdversaries, lambda: step(*labels))

    assert [(one.is_generator, one.label) for one in facts] == found


def test_other_networks_are_no_adversaries() -> None:
    """Nor is a network without what is cut off, nor labels that vary, nor two calls."""

    def varied() -> None:
        made = MAKER(torch.randn(8, 4))
        told(JUDGE(torch.randn(8, 2)), 1.0)
        told(JUDGE(made.detach()), 0.0)
        functional.binary_cross_entropy_with_logits(JUDGE(made), torch.arange(8.0)[:, None] / 8)

    assert not facts_of(AgreeingAdversaries, lambda: step(1.0, 0.0, 0.0, OTHER))
    assert not facts_of(AgreeingAdversaries, lambda: step(1.0, 0.0, 0.0, is_cut=False))
    assert not facts_of(AgreeingAdversaries, varied)
    assert not facts_of(AgreeingAdversaries, lambda: step(1.0, 0.0, 0.0), calls=2)
