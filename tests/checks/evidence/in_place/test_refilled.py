"""Which zeros of a mask an optimizer fills again."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from gradinspect.checks.evidence.in_place import refilled
from gradinspect.checks.evidence.in_place.refilled import RefilledLog
from gradinspect.checks.evidence.training.optimizers import Optimizers
from gradinspect.checks.evidence.values.calls import TorchCallLog
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.training import RefilledZeros
from gradinspect.recording.recorder import Recorder

MASK = torch.arange(48).view(6, 8) % 5 > 1
Write = Callable[[nn.Linear], object]


def nothing(_layer: nn.Linear) -> None:
    """Write no mask again."""


def trained(write: Write, again: Write = nothing, *, notes: int = 0) -> list[RefilledZeros]:
    """Let a program write to a weight, and then train it, perhaps with another write before each step."""
    layer = nn.Linear(8, 6)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    recorder = Recorder()
    flow, optimizers = Dataflow(recorder), Optimizers(recorder)
    with recorder, TorchCallLog(recorder, flow):
        found = RefilledLog(flow, recorder.errors)
        with torch.no_grad():
            write(layer)
        for _ in range(4):
            layer(torch.ones(2, 8)).square().sum().backward()
            with torch.no_grad():
                again(layer)
            flow.num_pauses += 1  # as the log of cuts does while an optimizer steps
            found.before_step(optimizer, optimizers.of(optimizer))
            optimizer.step()
            flow.num_pauses -= 1
        assert len(list(recorder.errors.notes())) == notes
        return list(found.facts(lambda tensors: tuple("weight" for _ in tensors), lambda _: None))


def assign_masked(layer: nn.Linear) -> None:
    """Set `.data` to a product."""
    layer.weight.data = layer.weight.data * MASK


def assign_by_index(layer: nn.Linear) -> None:
    """Set what a mask selects."""
    layer.weight.data[~MASK] = 0.0


def zero_a_block(layer: nn.Linear) -> None:
    """Set some columns to zero."""
    layer.weight.data[:, :3] = 0.0


@pytest.mark.parametrize(
    "write",
    [
        lambda layer: layer.weight.mul_(MASK),
        lambda layer: layer.weight.data.masked_fill_(~MASK, 0.0),
        lambda layer: layer.weight.copy_(layer.weight * MASK),
        assign_masked,
        assign_by_index,
    ],
)
def test_a_mask_that_is_written_once_is_lost(write: Write) -> None:
    """However it was written."""
    (found,) = trained(write)

    assert (found.names, found.num_zeros, found.num_elements) == (("weight",), int((~MASK).sum()), 48)


@pytest.mark.parametrize(
    ("write", "again"),
    [
        (lambda layer: layer.weight.mul_(MASK), lambda layer: layer.weight.mul_(MASK)),
        (lambda layer: layer.weight.mul_(MASK), lambda layer: layer.weight.grad.mul_(MASK)),
        (lambda layer: layer.weight.mul_(torch.tensor(0.5)), nothing),
        (lambda layer: layer.weight.mul_(torch.arange(8) > 2), nothing),
        (lambda layer: layer.weight.copy_(torch.eye(8)[:6]), nothing),
        (lambda layer: layer.weight.copy_(torch.ones(6, 8) * MASK), nothing),
        (lambda layer: layer.weight.copy_(torch.rand(6, 8).bernoulli()), nothing),
        (zero_a_block, nothing),
        (lambda layer: layer.bias.mul_(torch.arange(6) > 2), nothing),
    ],
    ids=["again", "gradient too", "a factor", "columns", "identity", "constant", "drawn", "a block", "a vector"],
)
def test_other_zeros_are_not_of_a_mask_that_is_lost(write: Write, again: Write) -> None:
    """Those that stay, and initial values."""
    assert not trained(write, again)


def test_a_large_weight_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not looked at."""
    monkeypatch.setattr(refilled, "MOST_ELEMENTS", 40)

    assert not trained(lambda layer: layer.weight.mul_(MASK), notes=1)
