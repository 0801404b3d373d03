"""The accelerator is asked only in ways that make no context on it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gradinspect.torch_api.devices.accelerators import (
    has_engine_threads,
    is_lost_in_fork,
    is_used,
    wait_for_device,
)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count how often the device was waited for, and fail where a question would touch it."""
    found: list[int] = []

    def touched(*_args: object) -> Any:
        raise AssertionError("this asks the driver")

    monkeypatch.setattr(torch.accelerator, "synchronize", lambda: found.append(1))
    for name in ("is_available", "device_count"):
        monkeypatch.setattr(torch.accelerator, name, touched)
    return found


def be(monkeypatch: pytest.MonkeyPatch, **functions: Any) -> None:
    """Let torch be built with an accelerator whose module is this."""
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("xpu"))
    monkeypatch.setattr(torch, "xpu", SimpleNamespace(**functions))


def test_a_device_that_the_program_does_not_use_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, waits: list[int]
) -> None:
    """Waiting would make a context."""
    be(monkeypatch, is_initialized=lambda: False)
    wait_for_device()

    assert not is_used()
    assert waits == []


def test_a_device_that_is_used_is_waited_for(monkeypatch: pytest.MonkeyPatch, waits: list[int]) -> None:
    """One that does not say whether it is used, as MPS, is."""
    be(monkeypatch, is_initialized=lambda: True)
    wait_for_device()
    be(monkeypatch)
    wait_for_device()

    assert waits == [1, 1]


def test_a_child_of_a_process_that_used_the_device_has_lost_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch says so itself, where the device has contexts."""
    be(monkeypatch, _is_in_bad_fork=lambda: True)

    assert is_lost_in_fork()

    be(monkeypatch)

    assert not is_lost_in_fork()


def test_without_an_accelerator_nothing_is_asked(monkeypatch: pytest.MonkeyPatch, waits: list[int]) -> None:
    """As in a build for the CPU."""
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: None)
    wait_for_device()

    assert (is_used(), is_lost_in_fork(), waits) == (False, False, [])


@pytest.mark.parametrize(
    ("names", "expected"), [(["python", "pt_autograd_0"], True), (["python", "pt_main_thread"], False), ([], True)]
)
def test_threads_of_the_engine_are_known_by_their_names(
    monkeypatch: pytest.MonkeyPatch, waits: list[int], tmp_path: Path, names: list[str], *, expected: bool
) -> None:
    """Where the system does not say which there are, any accelerator may have one."""
    be(monkeypatch)
    monkeypatch.setattr("gradinspect.torch_api.devices.accelerators._THREADS", tmp_path / "task")
    for name in names:
        (tmp_path / "task" / name).mkdir(parents=True)
        (tmp_path / "task" / name / "comm").write_text(f"{name}\n")

    assert has_engine_threads() is expected
    assert waits == []
