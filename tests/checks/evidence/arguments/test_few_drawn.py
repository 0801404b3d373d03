"""Samplers that draw from the first examples only."""

from typing import Any

import pytest
import torch
from argument_facts import facts_of
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset, WeightedRandomSampler

from gradinspect.checks.facts.targets import FewDrawn

X = torch.randn(40, 2)


class Rows(Dataset[torch.Tensor]):
    """A dataset of the program's own."""

    def __getitem__(self, place: int) -> torch.Tensor:
        """Return a row."""
        return X[place]

    def __len__(self) -> int:
        """Fail, as nobody but the program may ask."""
        raise AssertionError


def drawn(dataset: Any, num_weights: int, batch: int = 10) -> list[FewDrawn]:
    """Draw an epoch."""
    sampler = WeightedRandomSampler(torch.ones(num_weights), 20)
    loader = DataLoader(dataset, batch_size=batch, sampler=sampler)
    return facts_of(FewDrawn, lambda: list(loader), calls=1)


@pytest.mark.parametrize(
    ("dataset", "examples"),
    [(TensorDataset(X), 40), ([*X], 40), (Subset(TensorDataset(X), [*range(30)]), 30), (Rows(), None)],
)
def test_fewer_weights_than_examples_are_found(dataset: Any, examples: int | None) -> None:
    """The number of examples is known of what torch and Python make."""
    (found,) = drawn(dataset, 3)

    assert (found.num_weights, found.num_examples) == (3, examples)


def test_a_weight_for_each_example_is_what_is_wanted() -> None:
    """Of a dataset of the program's own, as many as a batch has may be all."""
    assert drawn(TensorDataset(X), 40) == drawn(Rows(), 10) == []
