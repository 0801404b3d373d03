"""Custom Functions checked in a few directions, without being asked."""

import time
from typing import Any

import pytest
import torch

from gradinspect.checks.evidence.custom_functions import one_direction
from gradinspect.checks.evidence.custom_functions.calls import CustomCall, CustomCalls
from gradinspect.checks.evidence.custom_functions.functions import unverified_notes
from gradinspect.checks.evidence.custom_functions.gradcheck import SURROGATE
from gradinspect.checks.evidence.custom_functions.one_direction import check_quickly, checked_in_copy
from gradinspect.checks.facts.values import CheckedFunction


class Swish(torch.autograd.Function):
    """Forgets the gradient that it is given."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        """Multiply by a sigmoid."""
        ctx.save_for_backward(x)
        return x * x.sigmoid()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        """Return the local derivative."""
        s = ctx.saved_tensors[0].sigmoid()
        return s + ctx.saved_tensors[0] * s * (1 - s)


class Hinge(torch.autograd.Function):
    """Forgets the gradient that it is given, and has none for most margins."""

    @staticmethod
    def forward(ctx: Any, margin: Any) -> Any:
        """Cut at one."""
        ctx.save_for_backward(margin)
        return (1 - margin).clamp(min=0)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        """Return the local derivative."""
        return -(ctx.saved_tensors[0] < 1).to(grad.dtype)


class Product(torch.autograd.Function):
    """Is right for one factor only."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        """Multiply."""
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        """Forget a factor."""
        return grad * ctx.saved_tensors[1], None


class Sign(Product):
    """Has the wrong sign for one of two."""

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        """Subtract."""
        x, y = ctx.saved_tensors
        return grad * y, -grad * x


class Clamp(torch.autograd.Function):
    """Lets gradients through its bounds."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        """Bound."""
        return x.clamp(-0.5, 0.5)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        """Do as if there was no bound."""
        return grad


class Guided(torch.autograd.Function):
    """Shows what raises a score."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        """Cut at 0."""
        ctx.save_for_backward(x)
        return x.relu()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        """Drop what is negative."""
        return grad.relu() * (ctx.saved_tensors[0] > 0)


class LearnedStep(torch.autograd.Function):
    """Rounds to a step size that is learned."""

    @staticmethod
    def forward(ctx: Any, x: Any, step: Any) -> Any:
        """Quantize."""
        ctx.save_for_backward(x, step)
        return (x / step).round() * step

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        """Use the gradients of the paper."""
        x, step = ctx.saved_tensors
        return grad, (grad * ((x / step).round() - x / step)).sum()


class Implicit(torch.autograd.Function):
    """Is not exact."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        """Take a root."""
        ctx.save_for_backward(x)
        return x.abs().sqrt()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        """Come within two percent."""
        (x,) = ctx.saved_tensors
        return 0.98 * grad * x.sign() / (2 * x.abs().sqrt())


class Narrow(torch.autograd.Function):
    """Computes in single precision."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        """Double."""
        return (2 * x.float()).double()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        """Double."""
        return 2 * grad


def a_call(function: Any, number: int = 1) -> CustomCall:
    """Return a call on matrices."""
    generator = torch.Generator().manual_seed(1)
    args = [torch.randn(3, 16, generator=generator).requires_grad_() for _ in range(number)]
    return CustomCall(function, tuple(args), {})


def checked(function: Any, number: int = 1) -> CheckedFunction:
    """Check a Function on matrices."""
    return check_quickly(a_call(function, number))


@pytest.mark.parametrize(("function", "number", "wrong"), [(Swish, 1, ["x"]), (Product, 2, ["y"]), (Sign, 2, ["y"])])
def test_what_is_far_off_is_named(function: Any, number: int, wrong: list[str]) -> None:
    """Only the arguments whose gradient is wrong."""
    found = checked(function, number)

    assert found.verdict == "wrong backward"
    assert wrong == [slope.argument for slope in found.slopes]


@pytest.mark.parametrize("function", [Clamp, Guided, Implicit])
def test_what_is_meant_is_right_in_these_directions(function: Any) -> None:
    """NOTE [Surrogate gradients]."""
    assert checked(function).verdict == "one direction"


class Binarize(Clamp):
    """A step function; its backward is that of a clamp."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        """Keep the sign."""
        return x.sign()


def test_a_surrogate_is_not_called_verified() -> None:
    """Nothing was compared: forward is constant there, whatever backward says."""
    found = checked(Binarize)
    known = (found, CheckedFunction(name="Clamp", verdict="one direction"))

    assert (found.verdict, found.reason) == ("surrogate", SURROGATE)
    assert list(unverified_notes(["a.Binarize", "a.Clamp", "a.Narrow"], known)) == [
        "1 custom Function not verified (Narrow): --gradcheck does.",
        "1 custom Function not verified (Binarize): forward is a step function or returns its input, so nothing says "
        "which backward is right.",
        "1 custom Function verified in a few directions only (Clamp): --gradcheck does it in full.",
    ]


def test_what_cannot_be_measured_is_not_called_wrong() -> None:
    """A value that is rounded to a learned step, lower precision, no gradient at all."""
    call = CustomCall(LearnedStep, (a_call(Clamp).args[0], torch.tensor(0.1, requires_grad=True)), {})

    assert check_quickly(call).verdict == "not checked"
    assert checked(Narrow).verdict == "not checked"
    assert check_quickly(CustomCall(Clamp, (torch.ones(2),), {})).verdict == "not checked"


class Counted(Clamp):
    """Counts how often it runs."""

    count = 0

    @classmethod
    def forward(cls, ctx: Any, x: Any) -> Any:
        """Bound."""
        cls.count += 1
        return x.clamp(-0.5, 0.5)


class Slow(Clamp):
    """Never comes back."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        """Wait."""
        time.sleep(60)


def test_a_copy_of_the_process_runs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing happens in this one; what takes too long was not checked."""
    (found,) = checked_in_copy([a_call(Counted)])
    monkeypatch.setattr(one_direction, "MOST_SECONDS", 0.1)

    assert (found.verdict, Counted.count) == ("one direction", 0)
    assert checked_in_copy([a_call(Slow)]) == []


def test_a_small_part_of_a_large_call_is_stored() -> None:
    """Memory is bounded, also until the program ends."""
    with CustomCalls(most_elements=100) as calls:
        Clamp.apply(torch.ones(1000, 1000, requires_grad=True))
    call = calls.take(f"{__name__}.Clamp")

    assert call is not None
    assert call.args[0].numel() < 100
    assert call.args[0].requires_grad


@pytest.mark.parametrize("seed", range(12))
def test_a_backward_that_forgets_its_gradient_is_found_whatever_the_numbers_are(seed: int) -> None:
    """The gradient in each direction is larger than ones, which it would be right for."""
    margin = torch.randn(64, generator=torch.Generator().manual_seed(seed)).add(0.7).requires_grad_()

    assert check_quickly(CustomCall(Hinge, (margin,), {})).verdict == "wrong backward"
