"""Steps in half precision that change few elements."""

import weakref
from collections.abc import Iterator

import pytest
import torch
from torch import nn

from gradinspect.checks.evidence.in_place.lost_updates import LEAST_STEPS, LostUpdateLog, lost_fact
from gradinspect.checks.evidence.training.optimizers import SeenOptimizer


class OwnSGD(torch.optim.SGD):
    """An optimizer of the program's own."""


def run(
    *rates: float,
    dtype: torch.dtype = torch.bfloat16,
    kind: type[torch.optim.SGD] = torch.optim.SGD,
    gradient: float = 1.0,
) -> Iterator[tuple[int, int]]:
    """Step with each learning rate, and yield how many elements were lost, and of how many."""
    weight = nn.Parameter(torch.linspace(0.5, 1.0, 16).to(dtype))
    optimizer = kind([weight], lr=rates[0])
    seen, log = SeenOptimizer(weakref.ref(optimizer), "opt", frozenset((id(weight),))), LostUpdateLog()
    for rate in rates:
        optimizer.param_groups[0]["lr"] = rate
        weight.grad = torch.full_like(weight, gradient)
        log.before_step(optimizer, seen)
        optimizer.step()
        log.after_step(seen)
    for one in log.found():
        fact = lost_fact(one, ["w"], None, lambda _: None)
        yield fact.num_lost, fact.num_elements


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_what_is_less_than_half_the_distance_is_lost(dtype: torch.dtype) -> None:
    """In each of several steps."""
    assert list(run(*[1e-5] * LEAST_STEPS, dtype=dtype)) == [(16 * LEAST_STEPS, 16 * LEAST_STEPS)]
    assert not list(run(*[1e-5] * (LEAST_STEPS - 1), dtype=dtype))
    assert not list(run(*[0.05] * LEAST_STEPS, dtype=dtype))


def test_other_steps_say_nothing() -> None:
    """Those in full precision, of zeros, without a learning rate, and of an optimizer that may keep the rest."""
    assert not list(run(*[1e-9] * LEAST_STEPS, dtype=torch.float32))
    assert not list(run(*[1e-5] * LEAST_STEPS, gradient=0.0))
    assert not list(run(*[0.0] * LEAST_STEPS))
    assert not list(run(*[1e-5] * LEAST_STEPS, kind=OwnSGD))


def test_a_warm_up_is_waited_for() -> None:
    """The steps count with which the learning rate is largest."""
    assert not list(run(1e-5, 2e-5, 3e-5, 4e-5, 5e-5))
    assert not list(run(*[1e-5] * LEAST_STEPS, *[0.05] * LEAST_STEPS))
    assert list(run(0.05, *[1e-5] * LEAST_STEPS)) == []
    assert len(list(run(1e-6, *[1e-5] * LEAST_STEPS))) == 1
