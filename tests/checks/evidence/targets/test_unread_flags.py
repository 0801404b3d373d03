"""Flags for the end of an episode that no target reads."""

from collections.abc import Callable
from typing import NamedTuple

import numpy
import pytest
import torch
from argument_facts import facts_of
from torch import Tensor, nn
from torch.nn import functional

from gradinspect.checks.evidence.targets import unread_flags
from gradinspect.checks.facts.targets import UnreadFlag

CALLS = unread_flags.LEAST_CALLS
LAYER = nn.Linear(4, 2)


def learned(target: Callable[[Tensor, Tensor, Tensor], Tensor], ends: int = 4) -> list[str]:
    """Compare what a network returns with a target, and return the names of the flags that nothing has read."""

    def step() -> None:
        state, after, reward = torch.randn(12, 4), torch.randn(12, 4), torch.ones(12)
        done = (torch.arange(12) < ends).float()
        with torch.no_grad():
            wanted = target(reward, LAYER(after), done)
        functional.mse_loss(LAYER(state)[:, 0], wanted)

    return [one.name for one in facts_of(UnreadFlag, step, calls=CALLS)]


@pytest.mark.parametrize(
    "target",
    [
        lambda reward, value, _: reward + 0.9 * value.max(1)[0],
        lambda reward, value, _: 0.9 * value.gather(1, value.argmax(1, keepdim=True)).squeeze(1) + reward,
        lambda reward, value, _: (reward + value.amax(1) * 0.9).detach(),
    ],
    ids=["max", "double", "amax"],
)
def test_a_flag_that_nothing_reads_is_named(target: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
    """However the value of what follows is chosen."""
    assert learned(target) == ["done"]
    assert learned(target, ends=0) == []
    assert learned(target, ends=12) == []


@pytest.mark.parametrize("reads", [False, True])
def test_a_flag_of_data_that_no_call_has_made(*, reads: bool) -> None:
    """From a replay memory in NumPy, which is noted where it is first read."""

    def step() -> None:
        done = torch.from_numpy((numpy.arange(12) < 4).astype("float32"))
        with torch.no_grad():
            wanted = torch.ones(12) + 0.9 * LAYER(torch.randn(12, 4)).amax(1)
            if reads:
                done.sum()
        functional.mse_loss(LAYER(torch.randn(12, 4))[:, 0], wanted)

    assert [one.name for one in facts_of(UnreadFlag, step, calls=CALLS)] == ([] if reads else ["done"])


@pytest.mark.parametrize(
    "target",
    [
        lambda reward, value, done: reward + 0.9 * value.max(1)[0] * (1 - done),
        lambda reward, value, done: reward + 0.9 * value.max(1)[0].masked_fill(done.bool(), 0),
        lambda reward, value, done: torch.where(done > 0, reward, reward + 0.9 * value.max(1)[0]),
        lambda reward, value, done: (reward - done) + 0.9 * value.max(1)[0],
        lambda reward, value, _: 0.9 * value.max(1)[0],
        lambda reward, value, _: reward + 0.9 * reward,
    ],
    ids=["factor", "filled", "where", "reward", "alone", "no_network"],
)
def test_other_targets_say_nothing(target: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
    """A flag that anything has read is known to the program."""
    assert learned(target) == []


def test_the_field_of_a_batch_has_its_name() -> None:
    """And a line that reads it after the loss shows that it is used."""

    class Batch(NamedTuple):
        reward: Tensor
        fell: Tensor

    def step(*, later: bool = False) -> None:
        batch = Batch(torch.ones(8), torch.eq(torch.arange(8), 3))
        wanted = batch.reward + 0.9 * LAYER(torch.randn(8, 4)).detach().max(1)[0]
        functional.smooth_l1_loss(LAYER(torch.randn(8, 4))[:, 0], wanted)
        if later:
            batch.fell.sum()

    assert [one.name for one in facts_of(UnreadFlag, step, calls=CALLS)] == ["batch.fell"]
    assert facts_of(UnreadFlag, lambda: step(later=True), calls=CALLS) == []
