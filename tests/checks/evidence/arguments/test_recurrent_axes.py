"""Which axis of the result of an RNN a line takes the last place of."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from gradinspect.checks.evidence.values.calls import TorchCallLog
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.values import LastAlongBatch
from gradinspect.recording.recorder import Recorder


def taken(take: Callable[[torch.Tensor], object], *shape: int, **options: bool) -> list[tuple[str, tuple[int, int]]]:
    """Run an RNN a few times, and return what is said of what is taken out of its results."""
    rnn = nn.RNN(3, 2, **options)
    with Recorder() as recorder, TorchCallLog(recorder, Dataflow(recorder)) as log:
        for _ in range(3):
            take(rnn(torch.randn(*shape))[0])
        facts = [one for one in log.arguments.facts(lambda _number: None) if isinstance(one, LastAlongBatch)]
    return [(one.op, one.shape) for one in facts]


@pytest.mark.parametrize(
    "take",
    [
        lambda out: out[:, -1],
        lambda out: out[:, 3, :],
        lambda out: out.relu().select(1, -1),
        lambda out: out.mean(dim=1),
        lambda out: torch.max(out, 1),
        lambda out: out.tanh().sum(-2),
    ],
    ids=["index", "place", "select", "mean", "max", "sum"],
)
def test_the_last_sequence_is_noticed(take: Callable[[torch.Tensor], object]) -> None:
    """However it is taken, if there are several, and the RNN takes axis 1 for the batch."""
    assert taken(take, 5, 4, 3) == [("RNN", (5, 4))]
    assert taken(take, 5, 4, 3, batch_first=True) == []


@pytest.mark.parametrize(
    "take",
    [
        lambda out: out[-1],
        lambda out: out[-1] + out[:, -1].mean(0),
        lambda out: [out[:, place] for place in range(4)],
        lambda out: out[:, 0] + out[:, -1],
        lambda out: out[1:, -1],
        lambda out: out.sin().sum(1)[:, -1],
        lambda out: out.detach()[:, -1],
        lambda out: out.mean(0).sum() + out.mean(1).sum(),
        lambda out: out.mean((0, 1)),
        lambda out: out.mean(2),
        lambda out: out.mean() + out.sum(),
        lambda out: torch.max(out, out * 2),
    ],
    ids=["step", "both", "each", "two", "steps", "sum", "no_graph", "means", "all", "features", "whole", "pairs"],
)
def test_what_may_be_meant_is_not(take: Callable[[torch.Tensor], object]) -> None:
    """Other sequences, or steps, show that the program knows its axes."""
    assert taken(take, 5, 4, 3) == []
    assert taken(lambda out: out[:, -1], 5, 1, 3) == []


def test_a_packed_sequence_has_no_axis_of_time() -> None:
    """What is indexed after it was padded again is not followed."""
    rnn = nn.LSTM(3, 2)
    with Recorder() as recorder, TorchCallLog(recorder, Dataflow(recorder)) as log:
        for _ in range(3):
            packed = nn.utils.rnn.pack_padded_sequence(torch.randn(5, 4, 3), torch.tensor([5, 4, 4, 2]))
            nn.utils.rnn.pad_packed_sequence(rnn(packed)[0])[0][:, -1]
        facts = [one for one in log.arguments.facts(lambda _number: None) if isinstance(one, LastAlongBatch)]

    assert facts == []


def test_data_from_numpy_are_followed_too() -> None:
    """They are entered where they are first read, which must not give the call that reads them another number."""
    rnn = nn.RNN(3, 2)
    with Recorder() as recorder, TorchCallLog(recorder, Dataflow(recorder)) as log:
        for _ in range(3):
            rnn(torch.from_numpy(np.ones((5, 4, 3), np.float32)))[0][:, -1]
        facts = [one for one in log.arguments.facts(lambda _number: None) if isinstance(one, LastAlongBatch)]

    assert [one.shape for one in facts] == [(5, 4)]
