"""Rows with several labels, of the calls of a loss."""

import torch
from argument_facts import facts_of
from torch.nn import functional

from gradinspect.checks.facts.targets import SeveralLabels

SCORES = torch.randn(4, 3, requires_grad=True)


def labels(target: list[list[float]]) -> list[SeveralLabels]:
    """Give a loss these rows."""
    return facts_of(SeveralLabels, lambda: functional.cross_entropy(SCORES, torch.tensor(target)), calls=2)


def test_several_ones_in_a_row_are_found() -> None:
    """With how many rows have them."""
    (found,) = labels([[1.0, 1, 0], [1, 1, 1], [0, 0, 1], [0, 0, 0]])

    assert (found.num_rows, found.num_several, found.most) == (8, 4, 3)


def test_one_class_of_each_row_is_what_is_wanted() -> None:
    """And so are fractions, of mixed and of smoothed labels."""
    assert labels([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]]) == []
    assert labels([[0.7, 0.3, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]]) == []


def test_a_batch_that_is_compared_with_itself_has_several_positives() -> None:
    """A square of scores is not looked at."""
    square = torch.ones(3, 3)
    scores = torch.randn(3, 3, requires_grad=True)

    assert facts_of(SeveralLabels, lambda: functional.cross_entropy(scores, square), calls=2) == []
