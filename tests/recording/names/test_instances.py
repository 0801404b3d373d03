"""Finding the live instances of a class."""

import gc

import torch
from strange_objects import OBJECTS

from gradinspect.recording.names.instances import freezes_noted, instances_of, live_optimizers
from gradinspect.torch_api.patching.patches import patched


class _Root:
    """A class of the test."""


def test_instances_of_subclasses_are_found() -> None:
    """Of all depths, and also of a class that cannot be hashed or compared."""
    middle = type("Middle", (_Root,), {})
    odd = OBJECTS["Meta"]("Odd", (middle,), {})
    made = [_Root(), middle(), odd()]

    found = instances_of(_Root)

    assert sorted(map(id, found)) == sorted(map(id, made))
    assert [one is made[2] for one in instances_of(odd)] == [True]


def test_what_a_program_has_frozen_is_found() -> None:
    """`gc.freeze()` hides it from `gc.get_referrers`; what is gone later is not found, nor is anything found twice."""
    optimizer, gone = (torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1) for _ in range(2))
    before = {id(one) for one in live_optimizers()}
    has_frozen = gc.get_freeze_count() > 0  # conftest.py: without it, all later tests would be slower
    with patched(freezes_noted()):
        try:
            gc.freeze()
            gc.freeze()  # what is hidden already stays known
            assert optimizer not in gc.get_referrers(torch.optim.SGD)
            assert {id(one) for one in live_optimizers()} == before
        finally:
            gc.unfreeze()

    assert [one is optimizer for one in live_optimizers()].count(True) == 1
    number = id(gone)
    del gone
    assert number not in {id(one) for one in live_optimizers()}
    if has_frozen:
        gc.collect()
        gc.freeze()
