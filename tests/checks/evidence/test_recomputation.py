"""Two runs of a checkpointed block, compared tensor by tensor."""

import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from gradinspect.checks.evidence.recomputation import CheckpointRuns
from gradinspect.checks.facts.graphs import KeptTensor, Mismatch, Redrawn
from gradinspect.recording.recorder import Recorder

Block = Callable[[torch.Tensor], torch.Tensor]
runs: list[int] = []


def compared(block: Block, **options: Any) -> list[Mismatch | Redrawn]:
    """Run a block under checkpoint, and backward; torch does not see the mismatches."""
    runs.clear()
    with Recorder(), CheckpointRuns(Path(__file__).parent) as log:
        x = torch.ones(2, 3, requires_grad=True) * 2
        result: torch.Tensor = checkpoint(block, x, use_reentrant=False, **options)
        result.sum().backward()
        found = log.take()
        assert log.take() == []
    return found


def other_op(x: torch.Tensor) -> torch.Tensor:
    """Save the same type of tensor with another operator, on the same line."""
    runs.append(1)
    ops = [torch.tanh, torch.sigmoid]
    return ops[len(runs) - 1](x.exp())


def other_line(x: torch.Tensor) -> torch.Tensor:
    """Run one of two lines."""
    runs.append(1)
    if len(runs) == 1:
        return x.exp().tanh()
    return x.exp().sigmoid()


def alike(x: torch.Tensor) -> torch.Tensor:
    """Do the same twice."""
    return torch.relu(x.exp() * x)


def from_two_lines(x: torch.Tensor) -> torch.Tensor:
    """Call a function on one line, then on another."""
    runs.append(1)
    if len(runs) == 1:
        return alike(x)
    return alike(x)


def drawing(x: torch.Tensor) -> torch.Tensor:
    """Draw random numbers."""
    return nn.functional.dropout(x.exp(), 0.5) * x


def shown(kept: KeptTensor | None, function: Block) -> tuple[str | None, tuple[int | str, ...], str, int] | None:
    """Return what is known of a tensor, with its line relative to the function."""
    if kept is None:
        return None
    line = 0 if kept.frame is None else kept.frame.line - function.__code__.co_firstlineno
    return kept.op, kept.info.shape or (), f"{kept.info.dtype} {kept.info.device}", line


def test_another_operator_or_line_is_a_mismatch() -> None:
    """At the first tensor that differs, with its operators, lines, types and what decided."""
    (op,), (line,) = compared(other_op), compared(other_line)

    assert isinstance(op, Mismatch)
    assert isinstance(line, Mismatch)
    assert (op.position, op.num_first, op.num_again) == (1, 2, 2)
    assert (line.position, line.num_first, line.num_again) == (0, 2, 2)
    assert shown(op.first, other_op) == ("tanh", (2, 3), "float32 cpu", 4)
    assert shown(op.again, other_op) == ("sigmoid", (2, 3), "float32 cpu", 4)
    assert shown(line.first, other_line) == ("exp", (2, 3), "float32 cpu", 4)
    assert shown(line.again, other_line) == ("exp", (2, 3), "float32 cpu", 5)
    decided = [one.decided and one.decided.line for one in (op, line)]
    first_lines = [one.__code__.co_firstlineno for one in (other_op, other_line)]
    assert decided == [first_lines[0] + 2, first_lines[1] + 3]
    assert not op.is_refused


def test_runs_that_are_alike_are_no_mismatch() -> None:
    """Random numbers are restored, unless the program says otherwise: then they are noted with the call."""
    assert compared(alike) == compared(drawing) == []
    assert compared(from_two_lines) == []  # what saved them is the same
    assert compared(alike, preserve_rng_state=False) == []
    (drawn,) = compared(drawing, preserve_rng_state=False)

    assert isinstance(drawn, Redrawn)
    assert drawn.frame is not None
    assert drawn.frame.file == "test_recomputation.py"
    assert drawn.frame.code == "result: torch.Tensor = checkpoint(block, x, use_reentrant=False, **options)"


@pytest.mark.parametrize(("again", "position"), [(3, None), (2, 2), (1, 1)])
def test_a_run_that_saves_less(again: int, position: int | None) -> None:
    """It differs where it ends, while the first still has a tensor."""

    def block(x: torch.Tensor) -> torch.Tensor:
        runs.append(1)
        for _ in range(3 if len(runs) == 1 else again):
            x = x.exp()
        return x * 2

    runs.clear()
    with Recorder(), CheckpointRuns(Path(__file__).parent) as log:
        x = torch.ones(2, requires_grad=True) * 2
        result = checkpoint(block, x, use_reentrant=False, early_stop=False)
        with suppress(torch.utils.checkpoint.CheckpointError):
            result.sum().backward()
    found = [one for one in log.take() if isinstance(one, Mismatch)]

    assert [(one.position, one.num_first, one.num_again) for one in found] == (
        [] if position is None else [(position, 3, again)]
    )
    assert all(one.first is not None and one.again is None for one in found)


def test_a_model_without_a_file_of_the_program_has_the_line_of_the_call() -> None:
    """Of torch's own containers; what they saved is known."""
    layers = nn.Sequential(nn.Tanh(), nn.Sigmoid())

    def shrink(_module: object, args: tuple[torch.Tensor]) -> tuple[torch.Tensor] | None:
        runs.append(1)
        return (args[0][:1],) if len(runs) > 1 else None

    layers[1].register_forward_pre_hook(shrink)
    runs.clear()
    with Recorder(), CheckpointRuns(Path(__file__).parent) as log:
        x = torch.ones(2, requires_grad=True) * 2
        line = sys._getframe().f_lineno + 1
        result = checkpoint(layers, x, use_reentrant=False, early_stop=False)
        with pytest.raises(torch.utils.checkpoint.CheckpointError):
            result.sum().backward()
    (one,) = log.take()

    assert isinstance(one, Mismatch)
    assert one.first is not None
    assert one.again is not None
    assert [kept.op for kept in (one.first, one.again)] == ["sigmoid", "sigmoid"]
    assert [kept.info.shape for kept in (one.first, one.again)] == [(2,), (1,)]
    assert one.first.frame is not None
    assert one.first.frame.line == line
    assert one.is_refused
