"""What the iterator of a DataLoader says of the batch that it makes."""

import torch
from torch.utils.data import DataLoader, TensorDataset

from gradinspect.torch_api.data.loaders import NEXT_BATCH, batch_place


def test_the_place_of_a_batch_is_known_in_a_fixed_order() -> None:
    """How many came before it, and how many there are; nothing is known of shuffled ones, and of other objects."""
    data = TensorDataset(torch.arange(10))
    iterator = iter(DataLoader(data, batch_size=4))
    places = [batch_place(iterator)]
    next(iterator)
    places.append(batch_place(iterator))

    assert places == [(0, 3), (1, 3)]
    assert batch_place(iter(DataLoader(data, batch_size=4, shuffle=True))) is None
    assert batch_place(None) is None
    assert type(iterator).__mro__[1].__next__.__code__ is NEXT_BATCH  # type: ignore[attr-defined]
