"""Parameters that have a gradient and do not change."""

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

from gradinspect.checks.evidence.in_place.unmoved import LEAST_STEPS, UnmovedLog, unmoved_fact
from gradinspect.checks.evidence.training.optimizers import SeenOptimizer
from gradinspect.recording.values.magnitudes import fetched


class Loop:
    """A few parameters, their optimizer, and a log that is told what they do."""

    def __init__(self, *weights: torch.Tensor, lr: float = 0.1) -> None:
        """Let the optimizer have them."""
        self.weights = [nn.Parameter(weight) for weight in weights]
        self.optimizer = torch.optim.SGD(self.weights, lr=lr)
        held = frozenset(map(id, self.weights))
        self.seen = SeenOptimizer(weakref.ref(self.optimizer), "opt", held, created=1, step=3)
        self.log = UnmovedLog()

    def backward(self, gradient: Callable[[torch.Tensor], torch.Tensor] = torch.ones_like) -> None:
        """Give each a gradient."""
        self.log.begin([(weight, f"w{place}") for place, weight in enumerate(self.weights)], 2)
        for weight in self.weights:
            weight.grad = gradient(weight)
        self.log.settle(fetched(self.log.pending))

    def step(self) -> None:
        """Step."""
        self.log.before_step(self.optimizer, self.seen)
        self.optimizer.step()
        self.log.after_step(self.optimizer)

    def found(self) -> list[tuple[str, str]]:
        """List names and reasons."""
        return [(one.name, one.kind) for one in self.log.found()]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, torch.complex64])
def test_what_moves_is_not_reported(dtype: torch.dtype) -> None:
    """Also where two elements move by as much in opposite directions, so that their sum stays."""
    loop = Loop(torch.full((2,), 0.6, dtype=dtype))
    for _ in range(LEAST_STEPS + 2):
        loop.backward(lambda weight: torch.tensor([1e-1, -1e-1], dtype=weight.dtype))
        loop.step()

    assert loop.found() == []
    assert loop.log.waits() is None


def test_a_step_that_is_lost_beside_the_value() -> None:
    """The log asks for more steps until there were enough."""
    loop = Loop(torch.full((2,), 1.0, dtype=torch.bfloat16), lr=1e-5)
    for _ in range(LEAST_STEPS):
        loop.backward()
        loop.step()
    assert loop.log.waits() == "w0 had a gradient and had not changed"
    assert loop.found() == []

    loop.backward()

    assert loop.found() == [("w0", "lost")]
    assert loop.log.waits() is None


def test_a_step_that_is_undone() -> None:
    """By a write between the step and the next backward; many values that are all the same may be at a bound."""
    loop = Loop(torch.tensor([1.0, 2.0]), torch.zeros(2))
    before = [weight.detach().clone() for weight in loop.weights]
    for _ in range(LEAST_STEPS + 1):
        loop.backward()
        loop.step()
        for weight, value in zip(loop.weights, before, strict=True):
            weight.data.copy_(value)

    assert loop.found() == [("w0", "undone")]


@pytest.mark.parametrize("is_missed", [True, False])
def test_what_a_call_left_that_another_one_has_followed_is_not_compared(is_missed: bool) -> None:
    """Two terms of a critic's loss cancel for its last bias; a generator's leaves a gradient there, which is cleared.

    Where the critic's own call was not looked at, its step finds other gradients than those that were seen.
    """
    loop = Loop(torch.ones(1), torch.ones(2))
    for _ in range(LEAST_STEPS + 2):
        loop.backward()  # of the generator's loss
        if is_missed:
            loop.log.unobserved()
            loop.weights[0].grad, loop.weights[1].grad = torch.zeros(1), torch.ones(2)
        else:
            loop.backward(lambda weight: torch.zeros(1) if weight is loop.weights[0] else torch.ones(2))
        loop.step()

    assert loop.found() == []


def test_a_gradient_that_is_zeroed_before_the_step() -> None:
    """Backward left one."""
    loop = Loop(torch.ones(2))
    for _ in range(LEAST_STEPS + 1):
        loop.backward()
        loop.weights[0].grad = torch.zeros(2)
        loop.step()

    assert loop.found() == [("w0", "cleared")]


def test_gradients_that_are_zero_from_the_start() -> None:
    """A mistake only if nothing of the optimizer learns: an expert may be idle for a while."""
    alone, beside = Loop(torch.ones(2)), Loop(torch.ones(2), torch.ones(3))
    for _ in range(LEAST_STEPS + 1):
        alone.backward(torch.zeros_like)
        alone.step()
        beside.backward(lambda weight: torch.full_like(weight, float(weight.numel() == 3)))
        beside.step()

    assert alone.found() == [("w0", "zero")]
    assert beside.found() == []


def test_gradients_next_to_nothing_are_those_of_a_bias_before_a_batch_norm() -> None:
    """A mistake only if nothing of the optimizer learns."""
    alone, beside = Loop(torch.ones(2)), Loop(torch.ones(2), torch.ones(3))
    for _ in range(LEAST_STEPS + 1):
        for loop in (alone, beside):
            loop.backward(lambda weight: torch.full_like(weight, 1.0 if weight.numel() == 3 else 1e-9))
            loop.step()

    assert alone.found() == [("w0", "lost")]
    assert beside.found() == []


def test_what_is_gone_by_the_end_is_known_by_what_it_was() -> None:
    """As all of a function's: a gradient next to nothing is none, and the class of the optimizer has its name."""
    loop = Loop(torch.ones(2), torch.tensor([3.0, 4.0]), torch.ones(2, dtype=torch.bfloat16), lr=1e-4)
    for _ in range(LEAST_STEPS + 1):
        loop.backward(lambda weight: torch.full_like(weight, 1e-17 if weight is loop.weights[0] else 1.0))
        loop.step()
    log, loop.weights = loop.log, []
    loop.optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))])
    gc.collect()

    (one,) = log.found()
    assert (one.name, one.kind, one.tensor()) == ("w2", "lost", None)
    assert unmoved_fact([one], lambda _: None, lambda _: None).method == "SGD"


def test_what_is_not_compared() -> None:
    """A learning rate of 0, a step without a gradient, a gradient that is not finite: other rules know these."""
    idle, without, infinite = (Loop(torch.ones(2), lr=lr) for lr in (0.0, 1e-12, 1e-12))
    for _ in range(LEAST_STEPS + 1):
        idle.backward()
        idle.step()
        without.backward()
        without.weights[0].grad = None
        without.step()
        infinite.backward(lambda weight: torch.full_like(weight, float("inf")))
    assert idle.found() == without.found() == infinite.found() == []


def test_no_copy_is_kept() -> None:
    """A parameter that goes is gone."""
    loop = Loop(torch.ones(2))
    loop.backward()
    gone = weakref.ref(loop.weights[0])

    loop.weights.clear()
    loop.optimizer.param_groups.clear()

    assert gone() is None


def test_rates_are_read_once_for_each_step() -> None:
    """Not once more for each parameter: a model may have very many."""

    class Groups(list[Any]):
        reads = 0

        def __iter__(self) -> Iterator[Any]:
            Groups.reads += 1
            return super().__iter__()

    loop = Loop(*[torch.ones(2) for _ in range(5)])
    loop.backward()
    groups = loop.optimizer.param_groups = Groups(loop.optimizer.param_groups)
    groups.append({**groups[0], "params": [nn.Parameter(torch.ones(2))], "lr": 7.0})
    before = Groups.reads
    loop.log.before_step(loop.optimizer, loop.seen)
    num_for_five = Groups.reads - before
    one = Loop(torch.ones(2))
    one.backward()
    one.optimizer.param_groups = Groups(one.optimizer.param_groups)
    before = Groups.reads
    one.log.before_step(one.optimizer, one.seen)

    assert num_for_five == Groups.reads - before
    assert [unmoved.rate for unmoved in loop.log._open.values()] == [0.1] * 5
