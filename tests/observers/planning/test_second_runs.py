"""Checkpointed blocks whose second run is not given what the first one was."""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from gradinspect.observers.operator_calls import OperatorCalls
from gradinspect.observers.planning.second_runs import SecondRuns
from gradinspect.torch_api.patching.patches import patched

Act = Callable[["_Block", torch.Tensor], torch.Tensor]
SCALES = iter([0.5, 2.0] * 10)


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

    def __init__(self, act: Act, norm: nn.Module) -> None:
        """Start with a state that is no buffer."""
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 4)
        self.norm = norm
        self.state = torch.ones(4)
        self.states = [torch.ones(4)]
        self.table: torch.Tensor | None = None
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


def difference(act: Act, norm: nn.Module | None = None, *, is_half: bool = False) -> str:
    """Run a block twice under a checkpoint, and return what was said of the second runs."""
    block = _Block(act, nn.Identity() if norm is None else norm)
    seen = SecondRuns(lambda error: pytest.fail(str(error)))
    with patched(seen.patch(block)):
        made = torch.utils.checkpoint.checkpoint
    assert torch.utils.checkpoint.checkpoint is checkpoint
    with OperatorCalls(seen.add, note=lambda error: pytest.fail(str(error))):
        for _ in range(2):
            with torch.autocast("cpu", torch.bfloat16, enabled=is_half):
                once = made(block, torch.ones(3, 4), use_reentrant=False)
                twice = made(block, once, use_reentrant=False)
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


@pytest.mark.parametrize("act", [tabled, kept, lambda _block, x: x])
@pytest.mark.parametrize("is_half", [False, True])
def test_what_is_given_the_same_is_not_named(act: Act, is_half: bool) -> None:
    """Also where autocast converts weights anew, and where what is used was made in the first run."""
    assert not difference(act, is_half=is_half)


@pytest.mark.parametrize("norm", [nn.BatchNorm1d(4), nn.BatchNorm1d(4, momentum=None)])
def test_statistics_that_are_put_back_are_left_out(norm: nn.Module) -> None:
    """Those of torch's own norms; what else reads them is given what the first run has left."""
    assert not difference(tabled, norm)
    assert "aten.add_" in difference(tabled, _Norm(4))
