"""The log of all calls of torch functions, which must not affect the program."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

from gradinspect.checks.evidence.values import calls
from gradinspect.checks.evidence.values.calls import TorchCallLog
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.values.storages import storage_key


def fail(*_args: object, **_kwargs: object) -> Any:
    """Raise, as the inspection of unusual tensors may."""
    message = "an unusual tensor"
    raise RuntimeError(message)


@pytest.mark.parametrize("inspection", ["function_name", "tensors_in", "plain_tensors_only", "version_of"])
def test_what_cannot_be_inspected_is_skipped(monkeypatch: pytest.MonkeyPatch, inspection: str) -> None:
    """The program has its result, and later calls are logged."""
    x = torch.ones(2)
    with Recorder() as recorder, TorchCallLog(recorder, Dataflow(recorder)) as log:
        with monkeypatch.context() as patch:
            patch.setattr(calls, inspection, fail)
            x.add_(1)
        x.mul_(3)

    assert x.tolist() == [6.0, 6.0]
    assert [one.op for one in log.writes.since(storage_key(x) or 0, -1)] == ["mul_"]


@pytest.mark.parametrize(
    ("write", "op"),
    [
        (lambda x: x.add_(1), "add_"),
        (lambda x: torch.add(torch.ones(2), 1, out=x), "add"),
        (lambda x: functional.relu(x, inplace=True), "relu_"),
        (lambda x: torch.add(x, 1), None),
        (lambda x: functional.relu(x, inplace=False), None),
    ],
)
def test_a_hook_that_writes_is_seen(write: Callable[[torch.Tensor], object], op: str | None) -> None:
    """Once, with its keywords, which may name what is written to."""
    x, w = torch.ones(2), torch.ones(2, requires_grad=True)

    def hook(_gradient: torch.Tensor) -> None:
        log.enter_backward()
        write(x)
        log.leave_backward()

    with Recorder() as recorder, TorchCallLog(recorder, Dataflow(recorder)) as log:
        w.register_hook(hook)
        (w * 2).sum().backward()

    assert [one.op for one in log.writes.since(storage_key(x) or 0, -1)] == ([] if op is None else [op])


def test_calls_on_inference_tensors_are_logged() -> None:
    """They have no version that could be compared."""
    with Recorder() as recorder:
        flow = Dataflow(recorder)
        with TorchCallLog(recorder, flow) as log:
            with torch.inference_mode():
                x = torch.ones(2)
                functional.relu(x)
            y = torch.ones(2)
            functional.relu(y, inplace=True)
        flow.close()

    assert [call.name for call in flow.calls] == ["ones", "relu", "ones"]
    assert [one.op for one in log.writes.since(storage_key(y) or 0, -1)] == ["relu_"]


@pytest.mark.parametrize("is_compiling", [True, False])
def test_what_torch_compiles_inside_a_hook_runs_as_it_is(
    monkeypatch: pytest.MonkeyPatch, *, is_compiling: bool
) -> None:
    """With its keywords; no write of it is seen."""
    x, w = torch.zeros(2), torch.ones(2, requires_grad=True)

    def hook(_gradient: torch.Tensor) -> None:
        log.enter_backward()
        monkeypatch.setattr(torch.compiler, "is_compiling", lambda: is_compiling)
        torch.add(torch.ones(2), 1, alpha=3, out=x)
        log.leave_backward()

    with Recorder() as recorder, TorchCallLog(recorder, Dataflow(recorder)) as log:
        w.register_hook(hook)
        (w * 2).sum().backward()

    assert x.tolist() == [4.0, 4.0]
    assert len(log.writes.since(storage_key(x) or 0, -1)) == (not is_compiling)


def test_what_begins_a_graph_is_told() -> None:
    """An operator that reads a leaf which requires grad, and makes a node; not one of its results."""
    told: list[str] = []
    w, x = torch.ones(2, requires_grad=True), torch.ones(2)
    with Recorder() as recorder, TorchCallLog(recorder, Dataflow(recorder)) as log:
        log.on_new_graph = lambda frame: told.append("" if frame is None else frame.f_code.co_name)
        x.exp()
        y = w.exp()
        (y * 2).sum()
        with torch.no_grad():
            w.exp()
        torch.stack([x, w])

    assert told == ["test_what_begins_a_graph_is_told"] * 2


def test_errors_of_ours_do_not_reach_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither after a call, nor inside backward."""
    x, w = torch.zeros(2), torch.ones(2, requires_grad=True)
    told: list[object] = []

    def hook(_gradient: torch.Tensor) -> None:
        log.enter_backward()
        x.add_(1)
        log.leave_backward()

    with Recorder() as recorder, TorchCallLog(recorder, Dataflow(recorder)) as log:
        log.on_new_graph = told.append
        monkeypatch.setattr(log.writes, "note", fail)
        monkeypatch.setattr(log._flow, "note", fail)
        w.register_hook(hook)
        loss = (w * 2).sum()
        loss.backward()
        x.add_(1)

    assert x.tolist() == [2.0, 2.0]
    assert told == []
