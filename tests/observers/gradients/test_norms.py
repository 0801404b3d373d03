"""Norms of any kind of tensor."""

import torch

from gradinspect.observers.gradients.norms import Norms
from gradinspect.recording.values.tensor_preview import show_tensor


def test_a_tensor_whose_memory_is_released_is_not_read() -> None:
    """As fully_shard leaves the parameters that it has gathered: reading one would end the process."""
    weight = torch.nn.Parameter(torch.ones(300, 300))
    weight.untyped_storage().resize_(0)
    norms = Norms()
    norms.take(3, weight)
    norms.take(4, torch.ones(0))

    assert norms.known == {4: 0.0}
    assert norms.notes("norm") == ("The norm of 1 weight was not measured: its memory is released.",)
    assert show_tensor(weight).shape == (300, 300)


def test_several_weights_that_cannot_be_measured_are_counted() -> None:
    """By their reasons, each in one sentence."""
    norms = Norms()
    for number in range(3):
        norms.take(number, torch.ones(2, device="meta"))

    assert norms.known == {}
    assert norms.notes("norm") == ("The norm of 3 weights was not measured: on the meta device, which has no values.",)
