"""Parameters that are made anew for each backward call."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from training_program import Program, code_of

from gradinspect.checks.evidence.training import made_anew as module_of_rebound
from gradinspect.checks.facts.training import UnheldParameters

X = torch.ones(3, 2)


def made_anew(use: Callable[[nn.Module], object] = lambda _layer: None, num_calls: int = 4) -> list[UnheldParameters]:
    """Train a model and a layer that is new in each iteration; `use` may use the layer after backward."""
    program = Program()
    with program:
        model = nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(num_calls):
            layer = nn.Linear(2, 2)
            optimizer.zero_grad()
            program.backward(layer(model(X)).sum())
            use(layer)
            optimizer.step()
    return program.facts(UnheldParameters)


def test_a_layer_that_is_new_in_each_call() -> None:
    """It is found by the line that makes it."""
    (found,) = made_anew()

    assert (found.kind, code_of(found.made)) == ("anew", "layer = nn.Linear(2, 2)")


def test_a_layer_is_new_after_calls_that_were_only_counted_as_well() -> None:
    """Of steps that were not looked at nobody knows whether they have changed the layer before."""
    program = Program()
    with program:
        model = nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(6):
            layer = nn.Linear(2, 2)
            optimizer.zero_grad()
            program.backward(layer(model(X)).sum())
            optimizer.step()
            if step == 3:
                program.log.wake()
    (found,) = program.facts(UnheldParameters)

    assert found.kind == "anew"


@pytest.mark.parametrize("num_calls", [2, 3])
def test_some_calls_may_have_a_layer_of_their_own(num_calls: int) -> None:
    """The first step is not done when the first of them is made."""
    assert made_anew(num_calls=num_calls) == []


@pytest.mark.parametrize(
    "use",
    [
        lambda layer: layer.weight.grad.sum(),  # as meta-learning does, which copies a model for each task
        lambda layer: torch.optim.SGD(layer.parameters(), lr=0.1).step(),
    ],
)
def test_new_layers_that_somebody_uses(use: Callable[[nn.Module], object]) -> None:
    """Their gradients are read, or they have an optimizer of their own."""
    assert made_anew(use) == []


def rebound(*, again: bool = True, other_shape: bool = False, with_optimizer: bool = False) -> list[UnheldParameters]:
    """Optimize a leaf, and assign another one to its variable after three steps."""
    program = Program()
    with program:
        z = torch.zeros(3, requires_grad=True)
        optimizer = torch.optim.SGD([z], lr=0.1)
        for number in range(8):
            if number == 3 and again:
                z = torch.ones(4 if other_shape else 3, requires_grad=True)
                optimizer = torch.optim.SGD([z], lr=0.1) if with_optimizer else optimizer
            optimizer.zero_grad()
            program.backward((z - 2).square().sum())
            optimizer.step()
    return program.facts(UnheldParameters)


def test_a_leaf_that_took_the_place_of_one_that_is_held() -> None:
    """With the line that made it."""
    (found,) = rebound()

    assert (found.kind, found.names) == ("rebound", ("z",))
    assert "z = torch.ones(" in str(code_of(found.made))


def test_leaves_that_one_line_replaces_are_told_together() -> None:
    """As those of a model of which a copy is trained next."""
    program = Program()
    with program:
        w, b = (torch.zeros(3, requires_grad=True) for _ in range(2))
        optimizer = torch.optim.SGD([w, b], lr=0.1)
        for number in range(8):
            if number == 3:
                w, b = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
            optimizer.zero_grad()
            program.backward((w - 2).square().sum() + b.square().sum())
            optimizer.step()
    (found,) = program.facts(UnheldParameters)

    assert (found.kind, set(found.names)) == ("rebound", {"w", "b"})


def test_leaves_are_compared_with_those_of_their_name_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not each with each: a program may optimize very many."""
    compared: list[tuple[str, str]] = []
    original = module_of_rebound._replaces

    def noted(one: Any, before: Any, *rest: Any) -> bool:
        compared.append((one.name, before.name))
        return original(one, before, *rest)

    monkeypatch.setattr(module_of_rebound, "_replaces", noted)
    program = Program()
    with program:
        first, second, third = (torch.zeros(3, requires_grad=True) for _ in range(3))
        optimizer = torch.optim.SGD([first, second, third], lr=0.1)
        for _ in range(3):
            program.backward((first * second * third + first + second + third).sum())
            optimizer.step()

    assert program.facts(UnheldParameters) == []
    assert compared == [(name, name) for name in ("first", "second", "third")]


def test_other_leaves() -> None:
    """The same one, one of another shape, and one with an optimizer of its own."""
    assert rebound(again=False) == []
    assert rebound(other_shape=True) == []
    assert rebound(with_optimizer=True) == []
