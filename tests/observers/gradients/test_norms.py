"""Norms of any kind of tensor."""

import torch

from gradinspect.observers.gradients.norms import norm_of
from gradinspect.recording.tensor_preview import show_tensor


def test_a_tensor_whose_memory_is_released_is_not_read() -> None:
    """As fully_shard leaves the parameters that it has gathered: reading one would end the process."""
    weight = torch.nn.Parameter(torch.ones(300, 300))
    weight.untyped_storage().resize_(0)

    assert norm_of(weight) is None
    assert show_tensor(weight).shape == (300, 300)
    assert norm_of(torch.ones(0)) == 0.0
