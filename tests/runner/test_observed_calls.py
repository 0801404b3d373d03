"""What an observer sees of the program from within a call."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from gradinspect.api.live.session import LiveSession
from gradinspect.recording.frames import user_frames
from gradinspect.runner.engine import CallEnd, EngineCall
from gradinspect.runner.observed_calls import ObservedCalls
from gradinspect.runner.observer import Observer
from gradinspect.runner.run import Run


class Walker(Observer[list[str]]):
    """Walks from where it is asked outward."""

    def __init__(self, _run: Run) -> None:
        """Start empty."""
        self.functions: list[str] = []

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Listen to nothing."""
        yield

    def on_call(self, call: EngineCall) -> CallEnd | None:
        """Walk before the call, and when it has ended."""
        self.functions += (frame.f_code.co_name for frame in user_frames(sys._getframe(1)))  # without this test's own
        return CallEnd(lambda _returned: self.functions.append("ended"), lambda: None)

    def result(self) -> list[str]:
        """List the functions of the program that were passed."""
        return self.functions


def inner_step() -> None:
    """Call backward."""
    torch.ones(2, requires_grad=True).sum().backward()


def outer_step() -> None:
    """Call what calls backward."""
    inner_step()


def test_a_walk_from_within_a_call_reaches_the_program() -> None:
    """It ends at the file that runs the program, and passes the one that takes the call."""
    with LiveSession(Walker, "step") as session:
        session.call(outer_step)
    assert session.result() == ["inner_step", "outer_step", "ended"]


def test_no_call_is_taken_before_the_run_begins() -> None:
    """Calls and missed ones are passed over until there is somebody to pass them to."""
    calls = ObservedCalls()
    calls.missed("backward")
    assert calls.take(EngineCall.__new__(EngineCall)) is None
