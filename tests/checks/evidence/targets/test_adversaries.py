"""Which adversaries are told the same."""

from collections.abc import Callable
from typing import Any

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


class Reversed(torch.autograd.Function):
    """Returns the opposite of a gradient."""

    @staticmethod
    def forward(_ctx: Any, x: Tensor) -> Tensor:
        """Return the same."""
        return x.view_as(x)

    @staticmethod
    def backward(_ctx: Any, *grads: Any) -> Any:
        """Reverse the gradient."""
        return -grads[0]


@pytest.mark.parametrize(
    ("after", "count"),
    [
        (lambda loss: loss + 1, 1),
        (lambda loss: loss.mean() / 2, 1),
        (lambda loss: -loss, 0),
        (lambda loss: 1 - loss, 0),
        (lambda loss: -0.5 * loss, 0),
    ],
)
def test_a_loss_may_be_made_larger(after: Callable[[Tensor], Tensor], count: int) -> None:
    """As in the first of all adversaries: the generator's loss is the discriminator's, with a minus."""

    def minimax() -> None:
        made = MAKER(torch.randn(8, 4))
        told(JUDGE(torch.randn(8, 2)), 1.0)
        told(JUDGE(made.detach()), 0.0)
        after(told(JUDGE(made), 0.0)).backward()

    assert len(facts_of(AgreeingAdversaries, minimax)) == count


def test_a_gradient_or_a_step_may_be_reversed() -> None:
    """By a Function, or by an optimizer."""

    def reversing() -> None:
        made = MAKER(torch.randn(8, 4))
        told(JUDGE(torch.randn(8, 2)), 1.0)
        told(JUDGE(made.detach()), 0.0)
        told(JUDGE(Reversed.apply(made)), 0.0)

    assert not facts_of(AgreeingAdversaries, reversing)
    optimizer = torch.optim.SGD(MAKER.parameters(), lr=0.1, maximize=True)
    assert not facts_of(AgreeingAdversaries, lambda: step(1.0, 0.0, 0.0))
    del optimizer
    assert facts_of(AgreeingAdversaries, lambda: step(1.0, 0.0, 0.0))
