"""Why a backward call has no graph, in small programs that run in this process."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

import gradinspect as gi
from gradinspect.checks.evidence.values.refused import nearest_cut
from gradinspect.checks.facts.value_flow import Call, FlowOutcome


def gradient(power: int) -> torch.Tensor:
    """Compute a gradient of a tensor that nothing keeps."""
    x = torch.ones(2, requires_grad=True)
    (found,) = torch.autograd.grad((x**power).sum(), x)
    return found


def of_one_gradient() -> object:
    """Use one gradient, and compute another."""
    x = torch.ones(2, requires_grad=True)
    (used,) = torch.autograd.grad(x.square().sum(), x)
    del x
    gradient(2)
    return used.sum().backward()


def of_two_gradients() -> object:
    """Use the gradients of two lines."""
    x = torch.ones(2, requires_grad=True)
    (used,) = torch.autograd.grad(x.square().sum(), x)
    x = torch.ones(2, requires_grad=True)
    (other,) = torch.autograd.grad(x.square().sum(), x)
    del x
    loss = (used + other).sum()
    return loss.backward()


def of_frozen_weights() -> object:
    """Use only parameters that do not learn."""
    model = nn.Linear(2, 1).requires_grad_(False)
    loss = model(torch.ones(3, 2)).sum()
    return loss.backward()


def of_detached() -> object:
    """Detach what a tensor that is alive was used for."""
    w = torch.ones(2, requires_grad=True)
    loss = (w * 2).detach().sum()
    return loss.backward()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "found"),
    [
        (of_one_gradient, ["GI402 gradient=3 used=6 backward=6"]),
        (of_two_gradients, ["GI402 gradient=5 used=7 backward=8"]),
        (of_frozen_weights, ["GI302 made=3 frozen=2 backward=4"]),
        (of_detached, ["GI302 read=3 detached=3 backward=4"]),
    ],
)
def test_why_nothing_requires_grad(step: Callable[[], object], found: list[str]) -> None:
    """The last gradient without a graph, the parameters that are frozen, or the cut, with their lines."""
    first = step.__code__.co_firstlineno

    assert [
        " ".join((one.code, *(f"{place.role}={place.line - first}" for place in one.places)))
        for one in gi.check(step, steps=1)
    ] == found


def test_a_loss_of_nothing_but_a_gradient_fails() -> None:
    """Rather than to lose one of its terms; where it was read decides what to do."""

    def read() -> object:
        w = torch.ones(2, requires_grad=True)
        w.square().sum().backward()
        assert w.grad is not None
        return w.grad.sum().backward()

    (computed,), (was_read,) = (gi.check(step, steps=steps) for step, steps in ((of_one_gradient, 1), (read, 2)))

    assert "adds" not in computed.text
    assert "fail" in computed.text
    assert "fail" in was_read.text
    assert computed.remedy != was_read.remedy


def test_the_cut_nearest_to_the_loss_is_chosen() -> None:
    """With all tensors that meet it; what Python got is the last resort; disabled gradients are one cause."""
    calls = [Call("op", frame=number // 2) for number in range(6)]
    far, near = FlowOutcome("cut", cut=0, cause="detach"), FlowOutcome("cut", cut=4, cause="detach")
    same_line, python = FlowOutcome("cut", cut=5, cause="integer"), FlowOutcome("cut", cut=5, cause="python")
    off = FlowOutcome("cut", cut=1, cause="grad_off")

    assert nearest_cut([far, near, FlowOutcome("unread"), same_line], calls) == [1, 3]
    assert nearest_cut([far, python], calls) == [0]
    assert nearest_cut([python], calls) == [0]
    assert nearest_cut([off, FlowOutcome("cut", cut=3, cause="grad_off")], calls) == [0, 1]
    assert nearest_cut([FlowOutcome("unread")], calls) == []
    assert nearest_cut([FlowOutcome("cut", cut=0, cause="detach")], [Call("op"), Call("op", frame=1)]) == [0]
