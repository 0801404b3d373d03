"""Layers that stand in many places, and checkpoints of which nothing is loaded."""

from typing import Any

import pytest
import torch
from torch import nn

from gradinspect.checks.evidence.training.models import own_backwards, repeated_layers, unloaded
from gradinspect.checks.facts.training import NothingLoaded
from gradinspect.graph import Frame

LINE = Frame(file="train.py", line=7)
LAYER = nn.Linear(2, 2)


@pytest.mark.parametrize(
    ("model", "found"),
    [
        (nn.Sequential(LAYER, LAYER, LAYER), [("", 3)]),
        (nn.ModuleDict({"blocks": nn.ModuleList([LAYER] * 2)}), [("blocks", 2)]),
        (nn.Sequential(LAYER), []),
        (nn.Sequential(), []),
        (nn.Sequential(LAYER, nn.Linear(2, 2)), []),
        (nn.Sequential(LAYER, LAYER, nn.ReLU()), []),
        (nn.Sequential(*[nn.ReLU()] * 2), []),  # without parameters
        (nn.ModuleDict({"a": LAYER, "b": LAYER}), []),
        (nn.Sequential(*[nn.Linear(2, 2).requires_grad_(False)] * 2), []),
    ],
)
def test_a_container_of_one_layer_in_all_places(model: nn.Module, found: list[tuple[str, int]]) -> None:
    """If it learns; each container is looked at."""
    assert [(one.path, one.num_places) for one in repeated_layers([nn.ReLU(), model])] == found


class WithBackward(nn.Module):
    """A module with a method that autograd does not call."""

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        """Change a gradient."""
        return -grad


class OfFramework(WithBackward):
    """One that replaces the method of another class, which a framework may call."""

    def backward(self, grad: torch.Tensor) -> torch.Tensor:
        """Change nothing."""
        return grad


class WithoutGradient(nn.Module):
    """A module whose backward runs the engine."""

    def backward(self) -> None:
        """Run it."""


class LikeATensor(nn.Module):
    """A module whose backward runs the engine, from a gradient if there is one."""

    def backward(self, gradient: torch.Tensor | None = None) -> None:
        """Run it."""


def test_a_backward_that_needs_a_gradient_is_noted_once() -> None:
    """Of each class, wherever its modules are; not what a class replaces, nor what needs no gradient."""
    others = WithoutGradient(), LikeATensor()
    model = nn.Sequential(WithBackward(), nn.Sequential(WithBackward(), OfFramework()), *others)

    assert list(own_backwards([model])) == [(WithBackward.backward.__code__, "WithBackward")]


def loaded(given: Any) -> NothingLoaded | None:
    """Load something into a layer."""
    model = nn.ModuleDict({"fc": nn.Linear(2, 1)})
    return unloaded(model, given, model.load_state_dict(given, strict=False), LINE)


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"module.fc.weight": 1, "x": 2}, ("module.fc.weight", "fc.weight", False)),
        ({"x": 2, "module.fc.bias": 1}, ("module.fc.bias", "fc.bias", False)),
        ({"weight": 1}, ("weight", "fc.weight", False)),
        ({"lin.w": 1, "lin.b": 2}, ("lin.w", "fc.weight", False)),
        ({"epoch": 3, "model": {"fc.weight": 1}}, ("model", "fc.weight", True)),
    ],
)
def test_a_checkpoint_with_other_names(given: dict[str, Any], names: tuple[str, str, bool]) -> None:
    """Those that differ by a prefix are shown, else the first ones; what is nested is shown by its key."""
    given_name, wanted, is_nested = names

    assert loaded(given) == NothingLoaded(
        model="ModuleDict",
        num_names=len(given),
        given=given_name,
        wanted=wanted,
        is_nested=is_nested,
        loaded=LINE,
    )


def test_a_checkpoint_of_which_something_is_loaded() -> None:
    """Or that is empty, or no mapping, or of a model without parameters."""
    model = nn.ModuleDict({"fc": nn.Linear(2, 1)})
    state = model.state_dict()
    result = model.load_state_dict({"x": 1}, strict=False)

    assert loaded({**state, "x": 1}) is None
    assert loaded({"fc.bias": state["fc.bias"], "x": 1}) is None
    assert loaded({}) is None
    assert loaded(state) is None
    assert unloaded(model, [("x", 1)], result, None) is None
