"""Which comparisons are those of a tensor with itself, computed twice."""

from collections.abc import Callable

import torch
from torch import Tensor

from gradinspect.checks.evidence.values.calls import TorchCallLog
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.values import SameTwice
from gradinspect.recording.recorder import Recorder

W = torch.tensor([1.0, 2.0], requires_grad=True)
V = torch.tensor([1.0, 2.0], requires_grad=True)


def twins(compare: Callable[[Tensor], Tensor], *, calls: int = 3) -> list[SameTwice]:
    """Run a comparison on one line some times, with other data each time, and return what is said of it."""
    with Recorder() as recorder, TorchCallLog(recorder, Dataflow(recorder)) as log:
        for number in range(calls):
            compare(torch.arange(2.0) + number)
        return [one for one in log.arguments.facts(lambda _number: None) if isinstance(one, SameTwice)]


def score(x: Tensor, weight: Tensor = W) -> Tensor:
    """Compute something from leaves."""
    return (weight * x).tanh()


def test_the_same_function_of_the_same_leaves_is_found() -> None:
    """As a difference, a quotient or the arguments of a loss, also beside another one on the same line."""
    for compare in (
        lambda x: score(x) - score(x),
        lambda x: score(x + 1) / score(x + 1),
        lambda x: torch.nn.functional.mse_loss(score(x), score(x)),
        lambda x: score(x) - score(x).clone(),
        lambda x: torch.exp(score(x) - score(x)) - (score(x) * 2 - 1),
    ):
        (found,) = twins(compare)
        assert found.num_calls == 3

    assert twins(lambda x: score(x) - score(x), calls=2) == []


def test_sides_that_are_equal_by_chance_are_not() -> None:
    """Other leaves, one call more, other data, a side without a graph, the same tensor, a single value."""
    assert twins(lambda x: score(x) - score(x, V)) == []
    assert twins(lambda x: (one := score(x)) - one.clamp(-9, 9)) == []
    assert twins(lambda x: score(x) - score(x + 1)) == []
    assert twins(lambda x: score(x) - score(x).detach()) == []
    assert twins(lambda x: (one := score(x)) - one) == []
    assert twins(lambda x: score(x).sum() - score(x).sum()) == []
