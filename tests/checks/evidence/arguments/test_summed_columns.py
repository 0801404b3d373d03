"""Which gradients of one column are the sum over several, and used as if they were not."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from gradinspect.checks.evidence.arguments.summed_columns import SummedColumnLog
from gradinspect.recording.transparency.own_errors import OwnErrors
from gradinspect.runner.engine import EngineCall


def used(
    use: Callable[[torch.Tensor, torch.Tensor], tuple[str, tuple[Any, ...]]],
    ones: Callable[[torch.Tensor], torch.Tensor] = torch.ones_like,
    columns: int = 2,
) -> list[tuple[int, ...]]:
    """Differentiate some columns by one, use the gradient, and return the shapes of what is reported."""
    log = SummedColumnLog(OwnErrors())
    t = torch.rand(5, 1, requires_grad=True)
    out = t * torch.arange(1.0, columns + 1)
    gradients = torch.autograd.grad(out, t, ones(out), create_graph=True)
    caller: Any = None
    call = EngineCall(
        kind="grad", number=1, outputs=(out,), gradients=(ones(out),), inputs=(t,), frame=None, caller=caller
    )
    log.returned(call, gradients, 3)
    name, args = use(gradients[0], out)
    log.used(name, args, 7)
    return [one.shape for one in log.facts(lambda _number: None)]


@pytest.mark.parametrize("name", ["sub", "mul", "mse_loss"])
def test_a_sum_beside_each_column_is_noticed(name: str) -> None:
    """On either side of an operator."""
    assert used(lambda gradient, out: (name, (gradient, out))) == [(5, 2)]
    assert used(lambda gradient, out: (name, (out, gradient))) == [(5, 2)]


def test_what_may_be_meant_is_not() -> None:
    """One column, another one of the same length, a weighted sum, another tensor."""
    assert used(lambda gradient, out: ("sub", (gradient, out)), columns=1) == []
    assert used(lambda gradient, out: ("sub", (gradient, out[:, :1]))) == []
    assert used(lambda gradient, out: ("sub", (gradient, out)), ones=lambda out: torch.ones_like(out) * 2) == []
    assert used(lambda gradient, out: ("sub", (gradient.clone(), out))) == []
    assert used(lambda gradient, out: ("cat", (gradient, out))) == []
