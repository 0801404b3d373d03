"""What torch's nodes tell about themselves."""

import sys
from types import FrameType
from typing import Any

import pytest
import torch

from gradinspect.torch_api import nodes
from gradinspect.torch_api.nodes import ForwardFrames


def test_each_function_class_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch has hundreds of them; one that is made later is found all the same."""
    looked_at: list[Any] = []
    codes_of = nodes._codes_of

    def counted(kind: Any) -> Any:
        looked_at.append(kind)
        return codes_of(kind)

    monkeypatch.setattr(nodes, "_codes_of", counted)
    frames, found = ForwardFrames(), []

    def other_code() -> FrameType | None:
        return frames.applied_from(sys._getframe())

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(_ctx: Any, x: torch.Tensor) -> torch.Tensor:
            found.append(frames.applied_from(sys._getframe()))
            return x * 2

    before = frames.applied_from(sys._getframe()), other_code()
    Double.apply(torch.ones(2))

    assert before == (None, None)
    assert found[0] is not None
    assert len(looked_at) == len(set(looked_at))
