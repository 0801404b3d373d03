"""Modules whose forward goes on with what an earlier call has left."""

import random
import re
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from gradinspect.observers.planning.unrepeatable import Unrepeatable
from gradinspect.recording.recorder import Recorder

Act = Callable[[nn.Module, torch.Tensor], torch.Tensor]


class _Inner(nn.Module):
    """Does something in its forward."""

    def __init__(self, act: Act) -> None:
        """Start with a buffer, a number, and a generator."""
        super().__init__()
        self.register_buffer("scale", torch.ones(2))
        self.calls = 0
        self.own = torch.Generator()
        self.last: torch.Tensor | None = None
        self._act = act

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Do it."""
        return self._act(self, x)


def replaced(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Give a buffer to the module anew."""
    module.scale = module.scale * 0.9
    return x * module.scale


def counted(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Count the call."""
    module.calls += 1
    return x / module.calls


def scaled(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Set a buffer in the first call."""
    if not module.calls:
        module.scale.fill_(2.0)
    return counted(module, x) * module.scale


def kept(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Keep a result for others to read, and draw from torch's own generator."""
    module.last = x * 2
    return nn.functional.dropout(x, 0.5)


def reason(act: Act, *, enabled: bool = True, calls: int = 1) -> tuple[str, str]:
    """Call a module inside another one, and return what is said of the inner and the outer one."""
    seen = Unrepeatable()
    inner = _Inner(act)
    outer = nn.Sequential(nn.BatchNorm1d(2), inner)
    with Recorder() as recorder, torch.set_grad_enabled(enabled):
        seen.attach(recorder, lambda error: pytest.fail(str(error)))
        for _ in range(calls):
            outer(torch.ones(3, 2, requires_grad=True))
    assert not seen.reason(outer[0])  # its statistics are put back by the code that is pasted
    return seen.reason(inner), seen.reason(outer)


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (lambda module, x: x * module.scale.mul_(0.9), "changes the buffer 'scale' of _Inner"),
        (replaced, "changes the buffer 'scale' of _Inner"),
        (counted, ""),  # a second run shows it
        (lambda _module, x: x * random.random(), "draws from Python's random"),  # noqa: S311  # as a program does
        (lambda _module, x: x * np.random.rand(), "draws from numpy.random"),  # as a program does
        (
            lambda module, x: x * torch.rand(2, generator=module.own),
            "draws from a torch.Generator of the program",
        ),
        (kept, ""),
        (lambda _module, x: x * torch.rand(2, generator=torch.default_generator), ""),
    ],
)
def test_what_a_forward_leaves_for_the_next_one_is_named(act: Act, expected: str) -> None:
    """Of the module that does so, and of those around it."""
    for calls in (1, 3):
        found = reason(act, calls=calls)
        said = [re.sub(r" \(test_unrepeatable\.py:\d+\)$", "", one) for one in found]
        assert said == [expected, expected]
        assert ("test_unrepeatable.py" in found[0]) == ("buffer" in expected)


def test_what_only_the_first_of_several_calls_writes_is_the_same_again() -> None:
    """A scale that is set from the first batch; of a single call, nobody knows."""
    assert reason(scaled, calls=2) == ("", "")
    assert reason(scaled)[0].startswith("changes the buffer 'scale' of _Inner")


def test_what_has_no_gradients_is_not_computed_again() -> None:
    """So nothing is said of it."""
    assert reason(replaced, enabled=False) == ("", "")
