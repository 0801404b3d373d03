"""Calls of the engine that a compiler makes, on tensors without values, are none of the program."""

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from gradinspect.runner.engine import is_traced


def test_what_a_transform_wraps_is_looked_at() -> None:
    """A compiler traces `torch.func.grad` so; up to torch 2.10 nothing else says that it is compiling."""
    found = []

    def loss(weight: torch.Tensor) -> torch.Tensor:
        found.append((type(weight) is torch.Tensor, is_traced([weight]), is_traced([weight], sees_fake=True)))
        return weight.sum()

    with FakeTensorMode() as mode:
        torch.func.grad(torch.func.grad(lambda weight: loss(weight) * 2))(mode.from_tensor(torch.ones(())))
    torch.func.grad(loss)(torch.ones(()))

    assert found == [(True, True, False), (True, False, False)]
