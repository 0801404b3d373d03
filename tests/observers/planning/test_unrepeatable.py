"""Modules whose forward goes on with what an earlier call has left."""

import itertools
import random
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from gradinspect.observers.planning.unrepeatable import Unrepeatable
from gradinspect.recording.recorder import Recorder

Act = Callable[[nn.Module, torch.Tensor], torch.Tensor]


class _Clock:
    """An object that a program made."""

    def __init__(self) -> None:
        """Start at zero."""
        self.ticks = 0

    def tick(self) -> int:
        """Go on."""
        self.ticks += 1
        return self.ticks


def counter() -> Callable[[], int]:
    """Make a function that counts its calls."""
    number = 0

    def count() -> int:
        nonlocal number
        number += 1
        return number

    return count


CACHE: dict[str, list[float]] = {"seen": []}
RANDOM = random.Random(0)  # noqa: S311  # as a program does
NUMPY = np.random.default_rng(0)
COUNT = counter()


class _Inner(nn.Module):
    """Does something in its forward."""

    made = 0

    def __init__(self, act: Act) -> None:
        """Start with a buffer, a number, and a generator."""
        super().__init__()
        self.register_buffer("scale", torch.ones(2))
        self.calls = 0
        self.own = torch.Generator()
        self.last: torch.Tensor | None = None
        self.history: list[torch.Tensor] = []
        self.clock = _Clock()
        self.numbers = itertools.count(1)
        self.scales = iter([1.0, 2.0, 3.0])
        self.table: list[float] | None = None
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


def kept(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Keep a result for others to read, and draw from torch's own generator."""
    module.last = x * 2
    return nn.functional.dropout(x, 0.5)


def listed(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Append to a list."""
    module.history.append(x)
    return x


def in_class(_module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Count in the class."""
    _Inner.made += 1
    return x / _Inner.made


def in_global(_module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Append to what a global variable holds."""
    CACHE["seen"].append(1.0)
    return x


def tabled(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Make a table in the first call."""
    module.table = module.table or [1.0]
    return x * module.table[0]


def drawn(_module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Draw from a generator of the program."""
    return x * RANDOM.random()


def drawn_by_numpy(_module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Draw from one of NumPy."""
    return x * NUMPY.random()


def counted_around(_module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Call a function that counts."""
    return x / COUNT()


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
        (counted, "changes 'calls' of _Inner"),
        (lambda _module, x: x * random.random(), "draws from Python's random"),  # noqa: S311  # as a program does
        (lambda _module, x: x * np.random.rand(), "draws from numpy.random"),  # as a program does
        (
            lambda module, x: x * torch.rand(2, generator=module.own),
            "draws from a torch.Generator of the program",
        ),
        (listed, "changes 'history' of _Inner"),
        (in_class, "changes 'made' of the class _Inner"),
        (in_global, "changes the global variable 'CACHE'"),
        (drawn, "changes the global variable 'RANDOM'"),
        (drawn_by_numpy, "changes the global variable 'NUMPY'"),
        (counted_around, "changes the variable 'number' of a function around it"),
        (lambda module, x: x / module.clock.tick(), "changes 'clock' of _Inner"),
        (lambda module, x: x / next(module.numbers), "changes 'numbers' of _Inner"),
        (lambda module, x: x / next(module.scales), "changes 'scales' of _Inner"),
        (kept, ""),
        (lambda _module, x: x * torch.rand(2, generator=torch.default_generator), ""),
    ],
)
def test_what_a_forward_leaves_for_the_next_one_is_named(act: Act, expected: str) -> None:
    """Of the module that does so, and of those around it."""
    assert reason(act) == (expected, expected)
    assert reason(act, calls=3) == (expected, expected)


def test_what_only_the_first_of_several_calls_makes_is_the_same_again() -> None:
    """A table that is there from then on; of a single call, nobody knows."""
    assert reason(tabled, calls=2) == ("", "")
    assert reason(tabled) == ("changes 'table' of _Inner",) * 2


def test_what_has_no_gradients_is_not_computed_again() -> None:
    """So nothing is said of it."""
    assert reason(counted, enabled=False) == ("", "")
