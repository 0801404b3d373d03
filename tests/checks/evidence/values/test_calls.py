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
from gradinspect.recording.storages import storage_key


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
