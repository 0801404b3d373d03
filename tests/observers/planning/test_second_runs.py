"""Checkpointed blocks whose second run is not given what the first one was."""

import itertools
import random
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from gradinspect.observers.operator_calls import OperatorCalls
from gradinspect.observers.planning.second_runs import SecondRuns
from gradinspect.torch_api.patching.patches import patched

Act = Callable[["_Block", torch.Tensor], torch.Tensor]
SCALES = iter([0.5, 2.0] * 10)
CACHE: dict[str, list[float]] = {"seen": []}
RANDOM = random.Random(0)  # noqa: S311  # as a program does
NUMPY = np.random.default_rng(0)


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


COUNT = counter()


class _Norm(nn.BatchNorm1d):
    """Reads what it has just written, unlike the batch norm of torch."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002  # as its base class calls it
        """Subtract the running mean."""
        assert self.running_mean is not None
        with torch.no_grad():
            self.running_mean += input.mean(0)
        return input * self.running_mean


class _Block(nn.Module):
    """Does something between two products."""

    made = 0

    def __init__(self, act: Act, norm: nn.Module) -> None:
        """Start with a state that is no buffer."""
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 4)
        self.norm = norm
        self.state = torch.ones(4)
        self.states = [torch.ones(4)]
        self.table: torch.Tensor | None = None
        self.calls = 0
        self.history: list[torch.Tensor] = []
        self.clock = _Clock()
        self.numbers = itertools.count(1)
        self.scales = iter([1.0] * 10)
        self.act = act

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Do it."""
        return self.last(torch.tanh(self.act(self, self.norm(self.first(x)))))


def replaced(block: _Block, x: torch.Tensor) -> torch.Tensor:
    """Go on with a state."""
    block.state = block.state * 0.5 + x.detach().mean(0)
    return x * block.state


def written(block: _Block, x: torch.Tensor) -> torch.Tensor:
    """Write to a state in place."""
    return x * block.state.mul_(0.5)


def listed(block: _Block, x: torch.Tensor) -> torch.Tensor:
    """Take what the last call has left in a list, of which the length stays."""
    last, block.states[0] = block.states[0], x.detach().mean(0)
    return x * last


def tabled(block: _Block, x: torch.Tensor) -> torch.Tensor:
    """Make a table in the first call."""
    if block.table is None:
        block.table = torch.cos(torch.arange(4.0))
    return x * block.table


def kept(block: _Block, x: torch.Tensor) -> torch.Tensor:
    """Keep a result that only others read, and make tensors of numbers."""
    block.state = x.detach()
    return nn.functional.dropout(x, 0.5) * torch.tensor([0.5, 1.0, 2.0, 4.0])


def noted(block: _Block, x: torch.Tensor) -> torch.Tensor:
    """Write anew what only others read."""
    block.calls = x.shape[0]
    block.history = []
    block.history.append(x.detach())
    return x


def counted(block: _Block, x: torch.Tensor) -> torch.Tensor:
    """Count the call."""
    block.calls += 1
    return x


def lengthened(block: _Block, x: torch.Tensor) -> torch.Tensor:
    """Append to a list."""
    block.history.append(x.detach())
    return x


def in_class(_block: _Block, x: torch.Tensor) -> torch.Tensor:
    """Count in the class."""
    _Block.made += 1
    return x


def in_global(_block: _Block, x: torch.Tensor) -> torch.Tensor:
    """Append to what a global variable holds."""
    CACHE["seen"].append(1.0)
    return x


def does(leave: Callable[[_Block], object]) -> Act:
    """Do something besides."""

    def act(block: _Block, x: torch.Tensor) -> torch.Tensor:
        leave(block)
        return x

    return act


@contextmanager
def statistics_kept(norm: nn.Module) -> Iterator[None]:
    """Have a norm leave its statistics, as the code of a plan does."""
    before = vars(norm).get("momentum")
    norm.momentum = 0.0
    yield
    norm.momentum = before


def difference(act: Act, norm: nn.Module | None = None, *, is_half: bool = False) -> str:
    """Run a block twice under a checkpoint, and return what was said of the second runs."""
    norm = nn.Identity() if norm is None else norm
    block = _Block(act, norm)

    def contexts() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
        return nullcontext(), statistics_kept(norm)

    seen = SecondRuns(lambda error: pytest.fail(str(error)))
    with patched(seen.patch(block)):
        made = torch.utils.checkpoint.checkpoint
    assert torch.utils.checkpoint.checkpoint is checkpoint
    with OperatorCalls(seen.add, note=lambda error: pytest.fail(str(error))):
        for _ in range(2):
            with torch.autocast("cpu", torch.bfloat16, enabled=is_half):
                once = made(block, torch.ones(3, 4), use_reentrant=False, context_fn=contexts)
                twice = made(block, once, use_reentrant=False, context_fn=contexts)
            twice.sum().backward()
    return seen.difference


@pytest.mark.parametrize(
    ("act", "operator"),
    [
        (replaced, "aten.mul.Tensor"),
        (written, "aten.mul_.Tensor"),
        (listed, "aten.mul.Tensor"),
        (lambda _block, x: x * next(SCALES), "aten.mul.Tensor"),
        (lambda _block, x: x * torch.tensor([next(SCALES)] * 4), "aten.lift_fresh.default"),
    ],
)
def test_the_operator_that_is_given_something_else_is_named(act: Act, operator: str) -> None:
    """With the line that ran it."""
    found = difference(act)
    assert found.startswith(f"When it runs again, {operator} is not given what it was given before")
    assert "test_second_runs.py:" in found


@pytest.mark.parametrize(
    ("act", "changed"),
    [
        (counted, "'calls' of _Block"),
        (lengthened, "'history' of _Block"),
        (in_class, "'made' of the class _Block"),
        (in_global, "the global variable 'CACHE'"),
        (does(lambda _block: RANDOM.random()), "the global variable 'RANDOM'"),
        (does(lambda _block: NUMPY.random()), "the global variable 'NUMPY'"),
        (does(lambda _block: COUNT()), "the variable 'number' of a function around it"),
        (does(lambda block: block.clock.tick()), "'clock' of _Block"),
        (does(lambda block: next(block.numbers)), "'numbers' of _Block"),
        (does(lambda block: next(block.scales)), "'scales' of _Block"),
    ],
)
def test_what_a_second_run_leaves_is_named(act: Act, changed: str) -> None:
    """With the line of the program that writes it: no operator shows it, but the program may go on with it."""
    found = difference(act)
    line = re.fullmatch(
        r"When it runs again, it changes (.*) \(test_second_runs\.py:(\d+)\), with which the program may go on\.", found
    )
    assert line is not None
    assert line[1] == changed
    lines = Path(__file__).read_text().splitlines()
    name = changed.split("'")[1]
    assert re.search(rf"\b{name}\b", lines[int(line[2]) - 1])


@pytest.mark.parametrize("act", [tabled, kept, noted, lambda _block, x: x])
@pytest.mark.parametrize("is_half", [False, True])
def test_what_is_given_the_same_is_not_named(act: Act, is_half: bool) -> None:
    """Also where autocast converts weights anew, and where what is used was made in the first run."""
    assert not difference(act, is_half=is_half)


@pytest.mark.parametrize(
    "norm", [nn.BatchNorm1d(4), nn.BatchNorm1d(4, momentum=None), nn.InstanceNorm1d(3, track_running_stats=True)]
)
def test_statistics_that_are_put_back_are_left_out(norm: nn.Module) -> None:
    """Those of torch's own norms; what else reads them is given what the first run has left."""
    assert not difference(tabled, norm)
    assert "aten.add_" in difference(tabled, _Norm(4))
