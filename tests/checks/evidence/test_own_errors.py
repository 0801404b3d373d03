"""Errors of ours while a program is checked: it goes on as it would, and what they hid is counted."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import gradinspect as gi
from gradinspect.checks.evidence.in_place import shared_memory, writes
from gradinspect.checks.evidence.in_place.step_writes import StepWrites
from gradinspect.checks.evidence.in_place.writes import WriteLog
from gradinspect.checks.evidence.kept_graphs.unused_graphs import UnusedGraphs
from gradinspect.checks.evidence.nonfinite import NonfiniteValues
from gradinspect.checks.evidence.training.gradient_use import GradientUse
from gradinspect.checks.evidence.training.log import TrainingLog
from gradinspect.checks.evidence.training.modes import Modes
from gradinspect.checks.evidence.training.optimizers import Optimizers
from gradinspect.checks.evidence.training.registrations import Registrations
from gradinspect.checks.evidence.values import broadcasts, dataflow
from gradinspect.checks.evidence.values.cuts import GradientCuts
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.observers.gradients.gradient_meter import GradientMeter
from gradinspect.recording.transparency.own_errors import OwnErrors

SEAMS = [
    (WriteLog, "contents"), (StepWrites, "_before_step"), (Dataflow, "note"), (GradientCuts, "begin"),
    (GradientCuts, "findings"), (GradientCuts, "_after_step"), (NonfiniteValues, "findings"), (GradientMeter, "finish"),
    (UnusedGraphs, "begin"), (UnusedGraphs, "findings"), (TrainingLog, "begin"), (TrainingLog, "_conclusions"),
    (GradientUse, "before_step"), (Optimizers, "create"), (Modes, "switch"), (Registrations, "module"),
]  # fmt: skip


def training() -> list[torch.Tensor]:
    """Make a model and an optimizer, train two steps, and return the parameters."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1)).train()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        net(torch.randn(8, 4)).square().mean().backward()
        optimizer.step()
        net[0].weight.data.clamp_(-5, 5)
    return [parameter.detach().clone() for parameter in net.parameters()]


def fails(*_arguments: Any, **_keywords: Any) -> Any:
    """Be an error of ours."""
    raise ZeroDivisionError


@pytest.mark.slow
@pytest.mark.parametrize(("owner", "name"), SEAMS, ids=[f"{owner.__name__}.{name}" for owner, name in SEAMS])
def test_an_error_of_ours_is_counted_and_not_raised(owner: type, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every log; the program's own numbers are those that it has alone."""
    expected = training()
    made: list[list[torch.Tensor]] = []
    monkeypatch.setattr(owner, name, fails)
    found = gi.check(lambda: made.append(training()))
    (note,) = (one for one in found.notes if one.startswith("Not looked at: "))

    assert all(map(torch.equal, expected, made[0]))
    assert note.endswith("ZeroDivisionError).")
    assert not found.is_complete


def test_a_run_without_errors_says_nothing() -> None:
    """And has looked at all."""
    found = gi.check(training)

    assert not [one for one in found.notes if one.startswith("Not looked at")]


def test_the_first_error_is_named_and_all_are_counted() -> None:
    """By the line of the program that ran then."""
    errors = OwnErrors()
    guarded: Callable[..., None] = errors.guard(fails)
    for argument in range(1200):
        guarded(argument)
    errors.note(KeyError("later"))

    assert len(list(errors.notes())) == 1
    (note,) = errors.notes()
    assert note.startswith("Not looked at: 1,201 calls (first: ")
    assert "ZeroDivisionError" in note
    assert list(OwnErrors().notes()) == []


def test_what_is_passed_over_is_counted_by_kind() -> None:
    """With the limit that each of them has reached."""
    errors = OwnErrors()
    assert not errors.hid_anything
    for _ in range(2):
        errors.pass_over("tensor whose memory NumPy may write", "larger than 1.0 MiB")
    errors.pass_over("write to memory", "before the last 500,000", 1_000)
    for number in (1, 3, 3):
        errors.leave_out("line of a program", "before the last 200", number)

    assert errors.hid_anything
    assert list(errors.notes()) == [
        "Not checked: 2 tensors whose memory NumPy may write, larger than 1.0 MiB.",
        "Not checked: 1,000 writes to memory, before the last 500,000.",
        "Not checked: 3 lines of a program, before the last 200.",
    ]


def of_numpy() -> None:
    """Train on what NumPy made, with an operator that broadcasts."""
    weight = nn.Parameter(torch.ones(3))
    for _ in range(2):
        batch = torch.from_numpy(np.ones((4, 3), dtype=np.float32))
        (batch * weight).square().mean().backward()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "limit", "value", "end"),
    [
        (writes, "MAX_WRITES", 1, "memory, before the last 1."),
        (shared_memory, "MAX_BYTES", 8, "whose memory NumPy may write, larger than 8 B."),
        (shared_memory, "MAX_VIEWS", 0, "whose memory NumPy may write, after the first 0."),
        (broadcasts, "MAX_REMEMBERED", 0, "on two shapes, after the first 0."),
        (dataflow, "MAX_CALLS", 3, "were not checked: there were more than 100,000 calls of torch functions."),
    ],
)
def test_a_limit_that_was_reached_is_said(
    module: ModuleType, limit: str, value: int, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And then not all was looked at."""

    def step() -> None:
        of_numpy()
        training()

    whole = gi.check(step, steps=4)
    monkeypatch.setattr(module, limit, value)
    found = gi.check(step, steps=4)

    assert whole.is_complete
    assert not [note for note in whole.notes if note.endswith(end)]
    assert not found.is_complete
    assert len([note for note in found.notes if note.endswith(end)]) == 1


@pytest.mark.parametrize(
    ("one", "several"),
    [
        ("batch of labels", "2 batches of labels"),
        ("tensor that is cast to whole numbers", "2 tensors that are cast to whole numbers"),
        ("weight that a mask was written to", "2 weights that a mask was written to"),
    ],
)
def test_several_of_a_kind_are_counted_in_the_plural(one: str, several: str) -> None:
    """The noun, and a verb that follows it."""
    errors = OwnErrors()
    errors.pass_over(one, "too large", 2)
    assert list(errors.notes()) == [f"Not checked: {several}, too large."]
