"""Which products spread values of each example along the rows."""

from collections.abc import Callable

import pytest
import torch
from argument_facts import facts_of
from torch import Tensor

from gradinspect.checks.facts.axes import SpreadAlongRow

TABLE, INDEX = torch.linspace(1, 2, 50), torch.randint(50, (6,))


def rest() -> Tensor:
    """Compute with values that were looked up."""
    return (1 - TABLE[INDEX]).sqrt()


@pytest.mark.parametrize(
    ("values", "x", "count"),
    [
        (lambda: TABLE[INDEX], torch.ones(6, 6), 1),
        (rest, torch.ones(6, 3, 6, 6), 1),
        (lambda: TABLE.gather(0, INDEX).sqrt(), torch.ones(6, 6), 1),
        (lambda: TABLE[INDEX][:, None], torch.ones(6, 6), 0),
        (lambda: TABLE[:6], torch.ones(6, 6), 0),  # a slice of the table: a value for each column
        (lambda: TABLE[INDEX], torch.ones(4, 6), 0),  # as many values as columns, and not as examples
        (lambda: TABLE[INDEX], torch.ones(6, 6, requires_grad=True), 0),  # similarities
        (lambda: torch.ones(6), torch.ones(6, 6), 0),
    ],
)
def test_values_of_each_example(values: Callable[[], Tensor], x: Tensor, count: int) -> None:
    """Looked up by an index for each, where a batch has as many examples as columns."""
    assert len(facts_of(SpreadAlongRow, lambda: values() * x)) == count


def test_one_batch_of_another_size_shows_that_columns_are_meant() -> None:
    """As the last one of an epoch."""
    sizes = iter([6, 6, 3])

    assert not facts_of(SpreadAlongRow, lambda: TABLE[INDEX] * torch.ones(next(sizes), 6), calls=3)
