"""Leaves that were made anew under the name of one that an optimizer holds."""

import torch
from training_program import Program, code_of

from gradinspect.checks.facts.training import UnheldParameters


def rebound(*, again: bool = True, other_shape: bool = False, with_optimizer: bool = False) -> list[UnheldParameters]:
    """Optimize a leaf, and assign another one to its variable after three steps."""
    program = Program()
    with program:
        z = torch.zeros(3, requires_grad=True)
        optimizer = torch.optim.SGD([z], lr=0.1)
        for number in range(8):
            if number == 3 and again:
                z = torch.ones(4 if other_shape else 3, requires_grad=True)
                optimizer = torch.optim.SGD([z], lr=0.1) if with_optimizer else optimizer
            optimizer.zero_grad()
            program.backward((z - 2).square().sum())
            optimizer.step()
    return program.facts(UnheldParameters)


def test_a_leaf_that_took_the_place_of_one_that_is_held() -> None:
    """With the line that made it."""
    (found,) = rebound()

    assert (found.kind, found.names) == ("rebound", ("z",))
    assert code_of(found.made).startswith("z = torch.ones(")


def test_other_leaves() -> None:
    """The same one, one of another shape, and one with an optimizer of its own."""
    assert rebound(again=False) == []
    assert rebound(other_shape=True) == []
    assert rebound(with_optimizer=True) == []
