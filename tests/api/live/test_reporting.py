"""`report`: the headlines of a step in the caller's process, each as its own function finds it."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

import gradinspect as gi


def training(num_nets: int = 1) -> Callable[[], None]:
    """Return a step of as many models, each with its own optimizer and backward."""
    torch.manual_seed(0)
    nets = [nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)) for _ in range(num_nets)]
    optimizers = [torch.optim.Adam(net.parameters()) for net in nets]

    def step() -> None:
        for net, optimizer in zip(nets, optimizers, strict=True):
            loss = net(torch.randn(32, 64)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return step


@pytest.mark.slow
@pytest.mark.parametrize("num_nets", [1, 2])
def test_the_peak_is_that_of_fit(num_nets: int) -> None:
    """To the byte: what the check has kept and computed is not counted."""
    step = training(num_nets)
    found = gi.report(step)

    assert found.step_memory is not None, found.no_memory
    assert found.step_memory.peak_bytes == gi.fit(step, steps=2).peak_bytes
    assert found.findings is not None
    assert not found.findings
    assert found.graph.gradients is not None
    assert repr(found).startswith("<Overview of step: ")
    assert "measured" in str(found)


@pytest.mark.slow
def test_an_optimizer_that_never_steps_is_not_waited_for() -> None:
    """As one of another cell of a notebook: the memory of a step is measured all the same."""
    idle = torch.optim.Adam([nn.Parameter(torch.ones(2))])

    found = gi.report(training())

    assert idle.param_groups
    assert found.step_memory is not None, found.no_memory
    assert found.findings is not None
    assert not found.findings


@pytest.mark.slow
def test_a_mistake_is_found() -> None:
    """As `check` finds it."""
    x = torch.zeros(3, requires_grad=True)

    def step() -> None:
        (x * 2).square().sum().sqrt().backward()

    found = gi.report(step)

    assert found.findings is not None
    assert {one.code for one in found.findings} == {one.code for one in gi.check(step)} == {"GI501"}


def test_a_step_without_a_backward() -> None:
    """One sentence."""
    with pytest.raises(gi.GradInspectError, match="calls no backward"):
        gi.report(lambda: None)
