"""Losses that no backward call goes through."""

import sys
from collections.abc import Callable

import torch
from torch import Tensor, nn

from gradinspect.checks.evidence.kept_graphs.dropped_losses import LEAST_DROPPED, LEAST_ROUNDS, DroppedLosses
from gradinspect.checks.evidence.values.calls import TorchCallLog
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.graphs import LastLossOnly
from gradinspect.graph import CallKind
from gradinspect.recording.recorder import Recorder
from gradinspect.runner.engine import EngineCall

NUM = LEAST_DROPPED + 1
Choose = Callable[[list[Tensor]], Tensor]


def rounds(
    choose: Choose, *, num_losses: int = NUM, num_rounds: int = LEAST_ROUNDS, kind: CallKind = "backward"
) -> list[LastLossOnly]:
    """Compute some losses in each round, and go backward through what is chosen of them, below their loop."""
    layer = nn.Linear(3, 1)
    with Recorder() as recorder:
        flow = Dataflow(recorder)
        log = DroppedLosses(flow, recorder.frames)
        with TorchCallLog(recorder, flow):
            for number in range(num_rounds):
                losses = []
                for x in torch.randn(num_losses, 4, 3):
                    losses.append(layer(x).square().mean())  # noqa: PERF401  # a loop, as programs have it
                root = choose(losses)
                log.begin(call_of(root, number, kind))
        return list(log.facts(lambda _number: None))


def call_of(root: Tensor, number: int, kind: CallKind) -> EngineCall:
    """Make the record of a call of the engine."""
    frame = sys._getframe(1)
    return EngineCall(kind=kind, number=number + 1, outputs=(root,), frame=frame, caller=frame)


def test_the_last_of_several_losses_is_found() -> None:
    """If it is so in each round, and backward is called below their loop."""
    (found,) = rounds(lambda losses: losses[-1])

    assert (found.num_losses, found.num_rounds, found.is_below) == (NUM, LEAST_ROUNDS, True)
    assert len(rounds(lambda losses: losses[-1], num_losses=8, num_rounds=2)) == 1


def test_fewer_losses_or_rounds_may_be_meant() -> None:
    """As in a program that trains on every second one."""
    assert rounds(lambda losses: losses[-1], num_losses=NUM - 1) == []
    assert rounds(lambda losses: losses[-1], num_rounds=LEAST_ROUNDS - 1) == []


def test_losses_that_something_reads_are_not_dropped() -> None:
    """They are added up, or one of them is chosen."""
    assert rounds(lambda losses: torch.stack(losses).mean()) == []
    assert rounds(lambda losses: max(losses[:-1], key=lambda one: one < losses[0]) * 0 + losses[-1]) == []
    assert rounds(lambda losses: losses[0]) == []


def test_autograd_grad_uses_what_it_is_called_for() -> None:
    """As for the losses of the tasks of a meta-learner."""
    assert rounds(lambda losses: losses[-1], kind="grad") == []
