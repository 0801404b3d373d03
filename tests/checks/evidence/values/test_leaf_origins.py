"""How leaves got their values."""

import math

import pytest
import torch
from torch import nn

from gradinspect.checks.evidence.values.calls import TorchCallLog
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.evidence.values.leaf_origins import LeafOrigins
from gradinspect.graph import Frame
from gradinspect.recording.recorder import Recorder


def frame_of(number: int | None) -> Frame | None:
    """Show the number of a frame as a line."""
    return None if number is None else Frame(file="train.py", line=number, code="...")


def test_the_last_write_or_else_the_call_that_made_it() -> None:
    """With its line, and the highest value that it has now."""
    recorder = Recorder()
    flow = Dataflow(recorder)
    with recorder, TorchCallLog(recorder, flow) as log:
        made, written, stepped = (torch.full((2,), 3.0, requires_grad=True) for _ in range(3))
        outside = nn.Parameter(torch.Tensor([1.0]))
        with torch.no_grad():
            written.mul_(2).fill_(0.0)
            made_last = torch.rand_like(written).requires_grad_()
        stepped.grad = torch.ones(2)
        flow.num_pauses += 1  # as for each step
        torch.optim.SGD([stepped], lr=1.0, foreach=False).step()
        flow.num_pauses -= 1
        origins = LeafOrigins(flow, log.writes, frame_of)
        found = [origins.of(leaf) for leaf in (made, written, stepped, made_last)]
        nothing = origins.of(outside), origins.of(None)
    flow.close()

    assert [one and one.op for one in found] == ["full", "fill", "full", "rand_like"]
    assert [one and one.highest() for one in found[:3]] == [3.0, 0.0, 2.0]
    lines = [one.frame.line for one in found if one is not None and one.frame is not None]
    assert len(lines) == 4
    assert lines[0] == lines[2] != lines[1]
    assert nothing == (None, None)


@pytest.mark.parametrize(("leaf", "highest"), [(torch.empty(0), math.inf), (torch.tensor([1.0, 4.0, 2.0]), 4.0)])
def test_the_highest_value(leaf: torch.Tensor, highest: float) -> None:
    """Infinite where there is none: it may be anything."""
    recorder = Recorder()
    flow = Dataflow(recorder)
    with recorder, TorchCallLog(recorder, flow) as log:
        tensor = leaf.clone()
        found = LeafOrigins(flow, log.writes, frame_of).of(tensor)
    flow.close()

    assert found is not None
    assert (found.op, found.highest()) == ("clone", highest)


def test_a_leaf_without_ordinary_memory_has_no_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is known of its values."""

    def refuse(_tensor: torch.Tensor) -> None:
        raise NotImplementedError

    recorder = Recorder()
    flow = Dataflow(recorder)
    with recorder, TorchCallLog(recorder, flow) as log:
        made = torch.ones(2)
        origins = LeafOrigins(flow, log.writes, frame_of)
        found = origins.of(made)
        monkeypatch.setattr(log.writes, "last_by_program", refuse)
        refused = origins.of(made)
    flow.close()

    assert found is not None
    assert refused is None
