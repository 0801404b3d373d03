"""Which RNNs and attentions run along the examples of a batch."""

from collections.abc import Callable

import pytest
import torch
from argument_facts import facts_of
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from gradinspect.checks.evidence.values.calls import TorchCallLog
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.axes import RunsAlongBatch
from gradinspect.graph import Frame
from gradinspect.recording.recorder import Recorder

DATA, IDS = torch.randn(40, 6, 8), torch.randint(9, (40, 6))
RNN, FIRST = nn.LSTM(8, 8), nn.LSTM(8, 8, batch_first=True)
LOOK, LOOK_FIRST = nn.MultiheadAttention(8, 2), nn.MultiheadAttention(8, 2, batch_first=True)
WORDS, MIX = nn.Embedding(9, 8), nn.Linear(8, 8)


def drawn() -> Tensor:
    """Draw the rows of a batch."""
    return torch.randperm(40)[:10]


def loaded(*, shuffle: bool) -> Tensor:
    """Take the first batch of a loader."""
    batch: Tensor = next(iter(DataLoader(TensorDataset(DATA), batch_size=10, shuffle=shuffle)))[0]
    return batch


@pytest.mark.parametrize(
    ("step", "op"),
    [
        (lambda: RNN(DATA[drawn()]), "LSTM"),
        (lambda: RNN(loaded(shuffle=True)), "LSTM"),
        (lambda: RNN(WORDS(IDS[drawn()]).relu() + 1), "LSTM"),
        (lambda: RNN(DATA[drawn()][:, :4]), "LSTM"),
        (lambda: RNN(DATA[drawn()].view(10, -1, 8)), "LSTM"),
        (lambda: RNN(DATA[torch.randint(40, (10,))].unsqueeze(2).squeeze(2)), None),  # squeeze is not followed
        (lambda: LOOK(y := MIX(DATA[drawn()]), y, y), ""),
        (lambda: (x := DATA[drawn()], LOOK(y := MIX(x) + x, x, y)), ""),
        (lambda: FIRST(DATA[drawn()]), None),
        (lambda: RNN(loaded(shuffle=False)), None),  # may be steps in their order
        (lambda: RNN(DATA[:10]), None),
        (lambda: RNN(DATA[drawn()].transpose(0, 1)), None),
        (lambda: RNN(DATA[drawn()].view(6, 10, 8)), None),
        (lambda: RNN(DATA[drawn()][2:]), None),
        (lambda: RNN(DATA[drawn()].mean(1, keepdim=True)), None),
        (lambda: RNN(DATA[:, drawn()[:4] % 6]), None),
        (lambda: LOOK_FIRST(y := DATA[drawn()], y, y), None),
        (lambda: LOOK(DATA[drawn()], DATA[:6], DATA[:6]), None),  # a memory
        (lambda: RNN(MIX(DATA[drawn()[:1]][0])), None),
    ],
)
def test_axis_0_is_followed_from_where_a_batch_was_put_together(step: Callable[[], object], op: str | None) -> None:
    """By a loader that shuffles, or an index that was drawn; not beyond what moves it."""
    found = facts_of(RunsAlongBatch, step)

    assert [one.op for one in found] == ([] if op is None else [op])
    assert all(one.shape[0] == 10 for one in found)


def test_one_call_of_another_kind_is_enough() -> None:
    """To say nothing of a line."""
    batches = [DATA[drawn()].transpose(0, 1), *(DATA[drawn()] for _ in range(5))]

    assert facts_of(RunsAlongBatch, lambda: RNN(batches.pop()), calls=6) == []


def test_a_line_that_several_lines_call_is_named_once() -> None:
    """As training and evaluation call the forward of one model."""
    line = Frame(file="train.py", line=9, code="return self.rnn(x)", function="forward")
    with Recorder() as recorder, TorchCallLog(recorder, Dataflow(recorder)) as log:
        for _ in range(6):
            run(DATA[drawn()])
            run(DATA[drawn()])
        found = [one for one in log.arguments.facts(lambda _number: line) if isinstance(one, RunsAlongBatch)]

    assert [one.ran for one in found] == [line]


def run(x: Tensor) -> None:
    """Run the layer, on one line."""
    RNN(x)
