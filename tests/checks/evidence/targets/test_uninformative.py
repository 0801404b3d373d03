"""Which labels say nothing."""

from collections.abc import Callable

import pytest
import torch
from argument_facts import facts_of
from torch import Tensor, nn
from torch.nn import functional

from gradinspect.checks.facts.targets import EqualLabels, OwnLabels

LAYER = nn.Linear(4, 2)
ONE = torch.randint(1, 2, (32,))


def scored() -> Tensor:
    """Score examples."""
    return LAYER(torch.randn(32, 4))


@pytest.mark.parametrize(
    ("labels", "count"),
    [
        (lambda: torch.randint(0, 1, (32,)), 1),
        (lambda: ONE[torch.randperm(32)], 1),
        (lambda: (torch.rand(32) >= 0).long() + 0, 1),
        (lambda: torch.randint(0, 2, (32,)), 0),
        (lambda: torch.zeros(32, dtype=torch.long), 0),  # on purpose
        (lambda: torch.ones_like(torch.randint(0, 2, (32,))), 0),  # of the shape of what is drawn
        (lambda: scored().new_zeros(32).long(), 0),
        (lambda: torch.full_like(ONE, 1), 0),
        (lambda: torch.ones(32).expand_as(scored()[:, 0]).long(), 0),
        (lambda: ONE[:1].expand(32), 0),
        (lambda: torch.zeros(40)[:32].long() + 0, 0),
        (lambda: torch.autograd.Variable(torch.FloatTensor(32).fill_(1.0)).long(), 0),
        (lambda: torch.FloatTensor(32).random_(1, 2).long(), 1),
    ],
)
def test_labels_that_are_all_the_same(labels: Callable[[], Tensor], count: int) -> None:
    """Where nobody made them so."""
    assert len(facts_of(EqualLabels, lambda: functional.cross_entropy(scored(), labels()))) == count


def test_few_labels_do_not_show_it() -> None:
    """Nor one call in which they vary."""
    labels = iter([ONE, ONE, ONE, ONE, torch.arange(32) % 2, ONE])

    assert not facts_of(EqualLabels, lambda: functional.cross_entropy(scored()[:4], ONE[:4].clone()))
    assert not facts_of(EqualLabels, lambda: functional.cross_entropy(scored(), next(labels)))


def test_a_line_of_zeros_beside_a_line_of_ones() -> None:
    """Each line knows its answer, as for what is real and what is not, wherever the labels were made."""
    zero = ONE - 1

    def both() -> Tensor:
        real = functional.cross_entropy(scored(), ONE.clone())
        return real + functional.cross_entropy(scored(), zero.clone())

    assert not facts_of(EqualLabels, both)


def test_labels_that_the_model_has_chosen() -> None:
    """Among the same scores, perhaps as probabilities; not those of another network."""

    def own() -> Tensor:
        scores = scored()
        return functional.cross_entropy(scores, scores.softmax(1).detach().max(1)[1])

    def other() -> Tensor:
        return functional.cross_entropy(scored(), scored().argmax(1))

    def also() -> Tensor:
        return own() + functional.cross_entropy(scored(), torch.randint(2, (32,)))

    assert [one.op for one in facts_of(OwnLabels, own)] == ["max"]
    assert facts_of(OwnLabels, other) == facts_of(OwnLabels, also) == []
