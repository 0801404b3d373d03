"""The last step of rows of which many end in padding."""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

from gradinspect.checks.evidence.axes.padded_ends import MOST_CALLS
from gradinspect.checks.evidence.values.calls import TorchCallLog
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.values import PaddedEnds
from gradinspect.recording.recorder import Recorder

BEHIND = torch.tensor([[3, 5, 7, 2], [4, 1, 0, 0], [6, 0, 0, 0]])
LENGTHS = torch.tensor([4, 2, 1])
Take = Callable[[torch.Tensor], object]


def found(
    ids: torch.Tensor, take: Take, *, padding: int | None = 0, times: int = 2, **options: bool
) -> list[tuple[str, int, int, int]]:
    """Run an RNN on the rows of an embedding, and return what is said of what is taken out of its results."""
    embed, rnn = nn.Embedding(9, 4, padding_idx=padding), nn.GRU(4, 5, **options)
    with Recorder() as recorder, TorchCallLog(recorder, Dataflow(recorder)) as log:
        for _ in range(times):
            take(rnn(nn.functional.dropout(embed(ids)))[0])
        facts = [one for one in log.arguments.facts(lambda _number: None) if isinstance(one, PaddedEnds)]
    return [(one.op, one.padding, one.num_padded, one.num_rows) for one in facts]


@pytest.mark.parametrize(
    "take",
    [lambda out: out[:, -1], lambda out: out[:, 3, :], lambda out: out.relu().select(1, -1)],
    ids=["index", "place", "select"],
)
def test_the_last_step_of_padded_rows_is_noticed(take: Take) -> None:
    """However it is taken, on the axis of time that the RNN has."""
    assert found(BEHIND, take, batch_first=True) == [("GRU", 0, 4, 6)]


def test_axis_0_is_time_without_batch_first() -> None:
    """Its last place is the last step then."""
    assert found(BEHIND.T, lambda out: out[-1]) == [("GRU", 0, 4, 6)]
    assert found(BEHIND.T, lambda out: out.select(0, 3)) == [("GRU", 0, 4, 6)]


def test_rows_that_were_filled_up_without_a_padding_idx() -> None:
    """Their ids show it; a negative padding_idx is counted from the end."""
    assert found(BEHIND, lambda out: out[:, -1], padding=None, batch_first=True) == [("GRU", 0, 4, 6)]
    assert found(BEHIND.where(BEHIND != 0, 8), lambda out: out[:, -1], padding=-1, batch_first=True) == [
        ("GRU", 8, 4, 6)
    ]


@pytest.mark.parametrize(
    "take",
    [
        lambda out: out[torch.arange(3), LENGTHS - 1],
        lambda out: (out[:, -1], out[torch.arange(3), LENGTHS - 1]),
        lambda out: (out[:, -1], out.gather(1, (LENGTHS - 1).view(3, 1, 1).expand(3, 1, 5))),
        lambda out: [out[:, step] for step in range(4)],
        lambda out: out[:, 0],
        lambda out: out[1:, -1],
        lambda out: out.mean(1),
        lambda out: out.detach()[:, -1],
    ],
    ids=["lengths", "both", "gather", "loop", "first", "some", "mean", "no_graph"],
)
def test_what_may_be_meant_is_not(take: Take) -> None:
    """Where other steps are taken, too, the program knows the lengths of its rows."""
    assert found(BEHIND, take, batch_first=True) == []


def test_rows_that_do_not_end_in_padding() -> None:
    """Filled up before their beginning, of equal length, too few, or one call alone."""
    few = torch.cat((torch.ones(5, 4, dtype=torch.int64), BEHIND[2:]))

    assert found(BEHIND.flip(1), lambda out: out[:, -1], batch_first=True) == []
    assert found(torch.tensor([[3, 5], [4, 1]]), lambda out: out[:, -1], batch_first=True) == []
    assert found(few, lambda out: out[:, -1], batch_first=True) == []
    assert found(BEHIND, lambda out: out[:, -1], times=1, batch_first=True) == []


def test_a_fixed_number_of_batches_of_ids_is_looked_at() -> None:
    """Also if none of them is padded: each costs a few operators."""
    embed, rnn = nn.Embedding(9, 4, padding_idx=0), nn.GRU(4, 5, batch_first=True)

    def facts(num_before: int) -> int:
        with Recorder() as recorder, TorchCallLog(recorder, Dataflow(recorder)) as log:
            for _ in range(num_before):
                embed(torch.ones(3, 4, dtype=torch.int64))
            for _ in range(2):
                rnn(embed(BEHIND))[0][:, -1].sum()
            return sum(isinstance(one, PaddedEnds) for one in log.arguments.facts(lambda _number: None))

    assert [facts(MOST_CALLS - 2), facts(MOST_CALLS)] == [1, 0]


def test_the_last_state_is_no_step() -> None:
    """It has one place for each layer, where steps would be."""
    embed, rnn = nn.Embedding(9, 4, padding_idx=0), nn.GRU(4, 5, num_layers=2)
    with Recorder() as recorder, TorchCallLog(recorder, Dataflow(recorder)) as log:
        for _ in range(2):
            rnn(embed(BEHIND.T))[1][-1].sum()
        facts = [one for one in log.arguments.facts(lambda _number: None) if isinstance(one, PaddedEnds)]

    assert facts == []


def test_packed_rows_have_no_padding() -> None:
    """What an RNN is given has none."""
    embed, rnn = nn.Embedding(9, 4, padding_idx=0), nn.GRU(4, 5, batch_first=True)
    with Recorder() as recorder, TorchCallLog(recorder, Dataflow(recorder)) as log:
        for _ in range(2):
            packed = pack_padded_sequence(embed(BEHIND), LENGTHS, batch_first=True)
            rnn(packed)[1][-1].sum()
        facts = [one for one in log.arguments.facts(lambda _number: None) if isinstance(one, PaddedEnds)]

    assert facts == []
