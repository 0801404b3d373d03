"""Which tensors share memory in one of two runs only."""

import sys

import torch
from torch import nn

from gradinspect.observers.gradients.shared_memory import MemoryOwner, lost_and_gained, shown_by_name


def test_what_shows_the_memory_of_an_input_has_it_as_owner() -> None:
    """So has what shows that of a parameter; results that share memory with each other have none."""
    layer, x = nn.Linear(4, 4), torch.randn(2, 4)
    flat, turned, again = x.view(-1), layer.weight.t(), x
    hidden = layer(x)
    kept = hidden.detach()
    with torch.no_grad():
        left, right = (x * 2).chunk(2)
    shown = shown_by_name(sys._getframe(), [("layer", layer)])
    owners = {name: one.owner for name, one in shown.items() if "." not in name}

    assert owners == {"x": "", "flat": "x", "turned": "layer.weight", "hidden": "", "kept": "", "left": "", "right": ""}
    assert all(one is not None for one in (flat, turned, again, kept, left, right))


def test_what_is_shared_in_one_run_only_is_named() -> None:
    """Not what another run does not have, or what shares memory in both with no owner in one."""
    apart, shared = {"x": MemoryOwner(1), "flat": MemoryOwner(2)}, {"x": MemoryOwner(7), "flat": MemoryOwner(7, "x")}
    lost, gained = list(lost_and_gained(0, apart, shared)), list(lost_and_gained(0, shared, apart))

    assert [(one.name, one.problem) for one in lost] == [("flat and x", "shared only in eager")]
    assert [(one.name, one.problem) for one in gained] == [("flat and x", "shared only if compiled")]
    assert not list(lost_and_gained(0, shared, {"x": MemoryOwner(3), "flat": MemoryOwner(3)}))
    assert not list(lost_and_gained(0, {"flat": MemoryOwner(2)}, shared))
