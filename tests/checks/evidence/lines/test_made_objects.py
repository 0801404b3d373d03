"""Which line made a module, a DataLoader or a scheduler."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from gradinspect.checks.evidence.lines import made_objects
from gradinspect.checks.evidence.lines.made_objects import Origins
from gradinspect.checks.evidence.training.log import TrainingLog
from gradinspect.checks.evidence.values.calls import TorchCallLog
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.targets import LabelRuns, OutOfReach
from gradinspect.checks.facts.value_flow import ancestors
from gradinspect.recording.frames import FrameTable
from gradinspect.recording.recorder import Recorder


class Net(nn.Sequential):
    """A model of the program's own, in a class."""

    def __init__(self) -> None:
        """Make its layers."""
        super().__init__(
            nn.Linear(4, 1),
            nn.ReLU(),
        )


def here() -> int:
    """Return the line of the caller."""
    return sys._getframe(1).f_lineno


class Watched:
    """A program that is watched, and what is known of it."""

    def __enter__(self) -> "Watched":
        self.recorder = Recorder()
        self.recorder.__enter__()
        self.flow = Dataflow(self.recorder)
        self.calls = TorchCallLog(self.recorder, self.flow)
        self.training = TrainingLog(self.recorder, self.flow, Path.cwd())
        self.calls.__enter__()
        self.training.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.training.__exit__(*error)
        self.calls.__exit__(*error)
        self.recorder.__exit__(None, None, None)

    def line(self, number: int | None) -> int | None:
        """Return the line of a frame."""
        found = self.recorder.frames.record(number, Path.cwd())
        return None if found is None else found.line


def test_the_line_of_a_constructor_is_that_of_the_call() -> None:
    """Also of a class that is derived, and of a layer without parameters inside of a call over several lines."""
    with Watched() as run:
        net, made = Net(), here()
        loss, optimizer = nn.CrossEntropyLoss(), torch.optim.SGD(net.parameters(), 0.1)
        scheduler, stepped = torch.optim.lr_scheduler.StepLR(optimizer, 3), here()
        loader = DataLoader(TensorDataset(torch.ones(4, 2)))
        origins = run.flow.origins
        lines = [run.line(origins.of(one)) for one in (net, net[1], loss, scheduler, loader)]

    inside = Net.__init__.__code__.co_firstlineno
    assert lines == [made, inside + 4, made + 1, stepped, stepped + 1]


def test_what_is_gone_or_was_never_seen_has_no_line() -> None:
    """An id may be used again."""
    origins = Origins(Recorder().frames)
    origins.note(nn.ReLU(), sys._getframe())

    assert origins.of(nn.ReLU()) is None
    assert origins.of_call(0) is None
    assert origins.loader_of(None) is None


def test_a_layer_is_named_by_its_call_where_several_stand_on_a_line() -> None:
    """The last of two relus makes what the loss gets."""
    with Watched() as run:
        first, second = nn.ReLU(), nn.Linear(4, 4)
        last, made = nn.ReLU(), here()
        for _ in range(3):
            out = last(second(first(torch.randn(8, 4))))
            nn.functional.mse_loss(out, torch.full((8, 4), -1.0)).backward()
        (fact,) = (one for one in facts_of(run) if isinstance(one, OutOfReach))
        number = run.flow.calls[run.flow.read(out).call].frame

    assert fact.layer is not None
    assert fact.layer.line == made
    assert run.flow.origins.of_line(number, "relu") is None


def test_a_function_that_the_program_calls_has_no_layer() -> None:
    """Even inside of the forward of a module of its own."""

    class Own(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nn.functional.relu(x)

    with Watched() as run:
        out = Own()(torch.ones(2, requires_grad=True))
        call = run.flow.read(out).call

    assert run.flow.origins.of_call(call) is None


def test_the_loader_of_classes_in_order_is_known() -> None:
    """Unless it draws the order: then what it has drawn from is in the order of the classes."""
    labels = torch.arange(4).repeat_interleave(32)
    data = TensorDataset(nn.functional.one_hot(labels).float(), labels)

    def lines_of(**options: Any) -> tuple[list[int | None], int, bool]:
        with Watched() as run:
            net = nn.Linear(4, 4)
            loader, made = DataLoader(data, 8, **options), here()
            for batch, target in loader:
                nn.functional.cross_entropy(net(batch), target.long()).backward()
            behind = ancestors(run.flow.calls, run.flow.read(target).call)
            runs = [one for one in facts_of(run) if isinstance(one, LabelRuns)]
            is_known = run.line(run.flow.origins.of_batch(behind)) == made
        return [None if one.loader is None else one.loader.line for one in runs], made, is_known

    lines, made, is_known = lines_of()
    assert lines == [made]
    assert is_known
    lines, made, is_known = lines_of(sampler=list(range(128)))
    assert lines == [None]
    assert is_known


def facts_of(run: Watched) -> list[object]:
    """List what the logs of arguments have seen."""
    return list(run.calls.arguments.facts(lambda number: run.recorder.frames.record(number, Path.cwd())))


def test_what_is_gone_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as all is there, it is not looked through for each object that is passed over."""
    monkeypatch.setattr(made_objects, "MOST_OBJECTS", 3)
    origins = made_objects.Origins(FrameTable())
    kept = [nn.Identity() for _ in range(6)]
    for one in kept:
        origins.note(one, sys._getframe())
    assert [origins.of(one) is not None for one in kept] == [True] * 3 + [False] * 3

    kept.clear()
    later = nn.Identity()
    origins.note(later, sys._getframe())
    assert origins.of(later) is not None
