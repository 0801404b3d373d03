"""The scope that disables gradients around a line."""

import sys
from pathlib import Path
from types import FrameType

import torch

from gradinspect.checks.evidence.values.grad_scopes import scope_of
from gradinspect.recording.frames import FrameTable


def here() -> FrameType:
    """Return the frame of the caller."""
    return sys._getframe(1)


@torch.no_grad()  # type: ignore[untyped-decorator]  # torch is not followed
def decorated() -> FrameType:
    """Run with gradients disabled."""
    return here()


def helped() -> FrameType:
    """Be called from such a scope."""
    return here()


def lines(frame: FrameType) -> str | None:
    """Return the text of the scope's line."""
    frames = FrameTable()
    found = scope_of(frames, frames.number_of(frame))
    if found is None:
        return None
    record = frames.record(frames.number_at(*found), Path.cwd())
    return None if record is None else record.code


def test_a_decorator_a_with_and_a_scope_of_the_caller() -> None:
    """The innermost one, by its own line."""
    with torch.inference_mode():
        inside, helping = here(), lines(helped())
        line = lines(inside)

    assert line == helping == "with torch.inference_mode():"
    assert lines(decorated()) == "@torch.no_grad()  # type: ignore[untyped-decorator]  # torch is not followed"


def test_no_scope() -> None:
    """Nothing is said where nothing is around the line."""
    assert lines(helped()) is None
