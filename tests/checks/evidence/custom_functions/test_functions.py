"""Custom Functions of a program, checked after it has ended."""

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.autograd.function import once_differentiable

from gradinspect.api.live.checking import check


class Cube(torch.autograd.Function):
    """Has a factor too little in its backward."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        """Cube."""
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]  # as torch declares it
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        """Forget the 3."""
        (x,) = ctx.saved_tensors
        return grad * x**2


class Square(torch.autograd.Function):
    """Is right."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        """Square."""
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        """Use the formula."""
        (x,) = ctx.saved_tensors
        return grad * 2 * x


class Hidden(Square):
    """Is applied in its own way."""

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Go around the method of torch."""
        return super(torch.autograd.Function, cls).apply(*args)


@pytest.mark.slow
def test_each_function_of_an_observed_graph_is_checked() -> None:
    """With the lines of its call and of its backward, below the decorators; what was not recorded is noted."""
    x = torch.ones(2, requires_grad=True)
    line = sys._getframe().f_lineno + 3

    def step() -> torch.Tensor:
        return (Cube.apply(x) + Square.apply(x)).sum()

    found = check(step, gradcheck=True, steps=1)

    assert [(one.code, one.subjects) for one in found] == [("GI201", ("Cube",))]
    (finding,) = found
    assert [(place.role, place.line) for place in finding.places] == [
        ("applied", line), ("defined", defined_at(Cube)), ("returned", defined_at(Cube) + 3)
    ]  # fmt: skip
    assert "Directional derivative with respect to x: numeric " in finding.text
    assert [(one.code, one.subjects) for one in check(step, steps=1)] == [("GI201", ("Cube",))]  # in a few directions


def test_a_function_whose_call_was_not_recorded_is_noted() -> None:
    """It may be right."""
    x = torch.ones(2, requires_grad=True)
    found = check(lambda: Hidden.apply(x).sum(), gradcheck=True, steps=1)

    assert not found
    reason = "it overrides apply, or an argument cannot be copied or is gone"
    assert f"Hidden was not checked: its call was not recorded: {reason}." in found.notes


def defined_at(function: Any) -> int:
    """Return the line of `def backward`."""
    backward: Callable[..., Any] = function.backward.__wrapped__
    return backward.__code__.co_firstlineno + 2


class Scale(torch.autograd.Function):
    """Is given a list."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, factors: list[float]) -> torch.Tensor:
        """Use the first."""
        ctx.factor = factors[0]
        return x * factors[0]

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Be right."""
        return grad * ctx.factor, None


@pytest.mark.parametrize(("number", "is_named"), [(1_000, False), (1_001, True)])
def test_an_argument_that_is_too_large_is_named(number: int, *, is_named: bool) -> None:
    """The note says which limit it is beyond, and does not promise that gradcheck helps."""
    x = torch.ones(3, requires_grad=True)
    notes = list(check(lambda: Scale.apply(x, [2.0] * number).sum().backward()).notes)
    limit = "1 custom Function not verified (Scale): a list, tuple, set or dict among its arguments has more than"

    assert [note for note in notes if note.startswith(limit)] == ([f"{limit} 1,000 elements."] if is_named else [])
    assert not any("not verified" in note and "--gradcheck does." in note for note in notes)
