"""Graph captures, as far as they can be tested without an accelerator: the answers of torch are faked."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import gradinspect as gi
from gradinspect.api.live.session import LiveSession
from gradinspect.observers.gradients.gradient_steps_observer import GradientStepsObserver
from gradinspect.observers.gradients.timeline_observer import TimelineObserver
from gradinspect.observers.gradients.values_observer import ValuesObserver
from gradinspect.recording.values.magnitudes import why_unread
from gradinspect.torch_api.devices.graph_capture import INSIDE, is_capturing


class Capture:
    """Whether the faked accelerator is capturing, and how often it was asked."""

    is_on = False
    is_initialized = True
    num_asked = 0

    def ask(self) -> bool:
        """Answer as `torch.cuda.is_current_stream_capturing` does."""
        self.num_asked += 1
        return self.is_on


@pytest.fixture
def capture(monkeypatch: pytest.MonkeyPatch) -> Capture:
    """Let torch say that there is an accelerator, on which a graph may be captured."""
    one = Capture()
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda *_args: torch.device("cuda"))
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: one.is_initialized)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", one.ask)
    return one


def captured_first(capture: Capture, num_captured: int) -> Callable[[], None]:
    """Make a step whose first calls are inside a capture."""
    torch.manual_seed(0)
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    left = iter(range(num_captured))

    def step() -> None:
        capture.is_on = next(left, None) is not None
        optimizer.zero_grad()
        net(torch.ones(2, 3)).square().mean().backward()
        optimizer.step()
        capture.is_on = False

    return step


def test_a_device_without_a_context_is_not_asked(capture: Capture) -> None:
    """Nor one that has no graphs; asking must not make a context."""
    assert not is_capturing()
    assert capture.num_asked == 1

    capture.is_initialized = False
    assert not is_capturing()
    assert capture.num_asked == 1


def test_values_on_a_device_are_not_read_inside_a_capture(capture: Capture) -> None:
    """Those of the CPU are no part of it."""
    capture.is_on = True

    assert why_unread(torch.ones(2)) is None
    assert why_unread(torch.ones(2, device="meta")) == INSIDE


def test_check_says_how_many_calls_it_did_not_look_at(capture: Capture) -> None:
    """In one line; the others are looked at, and nothing is found in these."""
    found = gi.check(captured_first(capture, 2), steps=5)

    assert "2 calls inside a CUDA graph capture were not looked at." in found.notes
    assert (found.num_calls, list(found)) == (3, [])


@pytest.mark.parametrize("kind", ["gradients", "values", "timeline"])
def test_the_first_call_outside_a_capture_is_measured(capture: Capture, kind: str) -> None:
    """The record says that there was one before."""
    makes: dict[str, Callable[[Any], Any]] = {
        "gradients": lambda run: GradientStepsObserver(run, 1), "values": ValuesObserver, "timeline": TimelineObserver,
    }  # fmt: skip
    step = captured_first(capture, 1)
    session: LiveSession[Any] = LiveSession(makes[kind], "test")
    with session:
        step()
        assert session.result() is None
        step()
    result: Any = session.result()
    graph = result if kind == "values" else result.graph

    assert graph.captured_at.number == 2
    assert graph.warnings == ("1 call inside a CUDA graph capture was not looked at.",)
