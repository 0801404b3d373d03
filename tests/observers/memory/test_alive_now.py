"""What is alive at one moment: storages of labeled tensors, each once."""

import torch

from gradinspect.observers.memory.alive_now import measure_alive
from gradinspect.observers.memory.storage_purposes import Label


def test_each_storage_counts_once_as_what_it_was_first() -> None:
    """Views share one; a tensor without memory of its own counts as the parts that it has."""
    weight, mask = torch.zeros(8), torch.zeros(4, 4).to_sparse()
    labels = [
        Label(weight, "parameter"),
        Label(weight[2:], "saved"),
        Label(torch.zeros(3), "saved"),
        Label(mask, "input"),
    ]
    found = measure_alive(labels, "backward begins")

    assert found.by_kind == {"parameter": 32, "saved": 12, "input": 0}
    assert found.num_bytes == 44
    assert (found.at, found.on) == ("backward begins", "cpu")


def test_nothing_is_nothing() -> None:
    """Nothing is labeled."""
    assert measure_alive([], "backward ends").num_bytes == 0
