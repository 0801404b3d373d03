"""Which losses grow worse with each step."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from gradinspect.checks.evidence.targets.signs import SignLog
from gradinspect.checks.evidence.values.calls import TorchCallLog
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.targets import WrongSign
from gradinspect.graph import Frame
from gradinspect.recording.recorder import Recorder

LAYER = nn.Linear(4, 3)
INPUT = torch.randn(6, 4, requires_grad=True)
LINE = Frame(file="train.py", line=3, code="loss.backward()")
Y = torch.arange(6) % 3


def signs(loss: Callable[[], Tensor], others: Callable[[], Tensor] | None = None) -> list[WrongSign]:
    """Look at a loss before four calls of backward, and at another one on another line."""
    with Recorder() as recorder:
        flow = Dataflow(recorder)
        log = SignLog(flow)
        with TorchCallLog(recorder, flow):
            for _ in range(4):
                log.begin((loss(),), LINE)
                if others is not None:
                    log.begin((others(),), None)
        return list(log.facts(lambda number: recorder.frames.record(number, Path(__file__).parent)))


def scored(x: Tensor | None = None) -> Tensor:
    """Score examples."""
    return LAYER(torch.randn(6, 4) if x is None else x)


def chosen() -> Tensor:
    """Return the logarithms of the probabilities of the labels."""
    return scored().log_softmax(1)[torch.arange(6), Y]


@pytest.mark.parametrize(
    ("loss", "ops"),
    [
        (lambda: -functional.cross_entropy(scored(), Y), ["cross_entropy"]),
        (lambda: functional.mse_loss(scored(), torch.ones(6, 3)) * -0.5, ["mse_loss"]),
        (lambda: chosen().mean(), ["getitem"]),
        (lambda: scored().log_softmax(1).gather(1, Y[:, None]).sum() / 6, ["gather"]),
        (lambda: functional.cross_entropy(scored(), Y), []),
        (lambda: -chosen().mean(), []),
        (lambda: -(chosen() * -torch.ones(6)).mean(), []),  # weighed, as by rewards, which may be negative
        (lambda: -functional.cross_entropy(scored(), Y) + LAYER.weight.square().sum(), []),
        (lambda: -functional.cross_entropy(scored(INPUT), Y), []),  # an adversary
        (lambda: -scored().square().mean(), []),
        (lambda: functional.cross_entropy(scored() * math.nan, Y), []),  # which is not negative
    ],
)
def test_the_sign_of_the_whole_loss(loss: Callable[[], Tensor], ops: list[str]) -> None:
    """Of a loss function, or of what is selected from the logarithms of probabilities."""
    assert [one.op for one in signs(loss)] == ops


def test_a_backward_that_makes_things_better_shows_that_another_one_is_meant() -> None:
    """As beside an adversary; and an optimizer may maximize."""
    worse = signs(lambda: -functional.cross_entropy(scored(), Y), lambda: functional.cross_entropy(scored(), Y))
    optimizer = torch.optim.SGD(LAYER.parameters(), lr=0.1, maximize=True)

    assert worse == []
    assert signs(lambda: -functional.cross_entropy(scored(), Y)) == []
    assert optimizer.param_groups[0]["maximize"]
