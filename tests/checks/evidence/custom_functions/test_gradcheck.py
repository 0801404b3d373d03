"""Custom Functions checked numerically: correct, wrong, intentional, or impossible to check."""

from typing import Any

import pytest
import torch

from gradinspect.checks.evidence.custom_functions import calls as calls_module
from gradinspect.checks.evidence.custom_functions import gradcheck
from gradinspect.checks.evidence.custom_functions.calls import CustomCall, CustomCalls
from gradinspect.checks.evidence.custom_functions.gradcheck import SURROGATE, check_function, unchecked_notes
from gradinspect.checks.evidence.custom_functions.shrinking import in_double_precision, num_elements, shrunk
from gradinspect.checks.facts.values import CheckedFunction


class Scale(torch.autograd.Function):
    """Twice its input, and a gradient that the class decides on."""

    slope = 2.0

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        """Double."""
        return 2 * x

    @classmethod
    def backward(cls, ctx: Any, grad: Any) -> Any:
        """Scale."""
        return cls.slope * grad


class WrongScale(Scale):
    """Half of the gradient is lost."""

    slope = 1.0


class Noisy(Scale):
    """Random."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        """Add noise."""
        return 2 * x + torch.randn_like(x)


class Single(Scale):
    """In one dtype only."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        """Take single precision only."""
        return 2 * torch.mm(x, torch.eye(x.shape[1], dtype=torch.float32))


class Coarse(Scale):
    """Wide outside, narrow inside."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        """Compute in single precision."""
        return (2 * x.float()).double()


class Returns(Scale):
    """Narrow outside."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        """Return single precision."""
        return (2 * x).float()


class Step(Scale):
    """A gradient through a step."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        """Round."""
        return x.round()


class Heads(Scale):
    """A length that must stay what it is."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        """Take eight heads."""
        return 2 * x.view(x.shape[0], 8, -1).flatten(1)


class Infinite(Scale):
    """A result that is not finite."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        """Overflow."""
        return 2 * x + float("inf")


def checked(function: Any) -> CheckedFunction:
    """Check a Function on a matrix."""
    return check_function(CustomCall(function, (torch.randn(3, 16, requires_grad=True),), {}))


@pytest.mark.parametrize(("function", "verdict"), [(Scale, "correct"), (Step, "surrogate"), (Heads, "correct")])
def test_what_is_right_or_by_choice(function: Any, verdict: str) -> None:
    """A derivative, a straight-through estimator, and one that only runs on the lengths that it got."""
    assert checked(function).verdict == verdict


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (Noisy, "its results differ from call to call"),
        (Single, "it fails in double precision with RuntimeError: expected m1 and m2"),
        (Coarse, "it computes in lower precision inside, which is too coarse for finite differences"),
        (Returns, "it always returns torch.float32, which is too coarse for finite differences"),
        (Infinite, "its result or its gradient is not finite here"),
    ],
)
def test_what_cannot_be_checked_has_a_reason(function: Any, reason: str) -> None:
    """None of them is called wrong."""
    found = checked(function)

    assert found.verdict == "not checked"
    assert found.reason.startswith(reason)


def test_a_wrong_one_is_measured() -> None:
    """The slope in one direction, by argument: numeric and from backward."""
    found = checked(WrongScale)
    (slope,) = found.slopes

    assert found.verdict == "wrong backward"
    assert slope.argument == "x"
    assert slope.numeric == pytest.approx(2 * slope.backward, rel=1e-6)


def test_no_number_of_the_program_changes() -> None:
    """Neither the recorded arguments nor the random numbers."""
    x = torch.randn(3, 16, requires_grad=True)
    before, state = x.detach().clone(), torch.get_rng_state()
    check_function(CustomCall(WrongScale, (x,), {}))

    assert torch.equal(before, x)
    assert x.grad is None
    assert torch.equal(state, torch.get_rng_state())


def test_arguments_are_copied_before_forward_sees_them() -> None:
    """Once for each Function, and apply is itself again afterwards."""
    original = torch.autograd.Function.__dict__["apply"]
    x = torch.ones(2, requires_grad=True)
    with CustomCalls() as calls:
        Scale.apply(x)
        Scale.apply(x * 3)
    with torch.no_grad():
        x.zero_()
    call = calls.take(f"{__name__}.Scale")

    assert torch.autograd.Function.__dict__["apply"] is original
    assert call is not None
    assert call.args[0].tolist() == [1.0, 1.0]
    assert call.args[0].requires_grad
    assert call.kwargs == {}
    assert calls.take(f"{__name__}.Scale") is None


class Square(torch.autograd.Function):
    """One that torch.func transforms take."""

    @staticmethod
    def forward(x: torch.Tensor) -> torch.Tensor:
        """Square."""
        return x**2

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[torch.Tensor], output: torch.Tensor) -> None:
        """Keep the input."""
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        """Twice the input."""
        (x,) = ctx.saved_tensors
        return 2 * x * gradient


def test_what_cannot_be_copied_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing reaches the program, and a later call is recorded."""
    name = f"{__name__}.Square"

    def fail(_: object) -> None:
        raise RuntimeError("no such operator")

    with CustomCalls() as calls:
        with monkeypatch.context() as patch:
            patch.setattr(calls_module, "_kept", fail)
            assert Square.apply(torch.ones(2, requires_grad=True)).tolist() == [1.0, 1.0]
        assert calls.take(name) is None
        assert torch.func.grad(lambda x: Square.apply(x).sum())(torch.ones(2)).tolist() == [2.0, 2.0]
        found = calls.take(name)

    assert found is not None
    assert found.args[0].tolist() == [1.0, 1.0]


def test_equal_lengths_stay_equal_and_others_others() -> None:
    """A product of matrices still fits; an index stays inside; what is small stays."""
    args = [torch.randn(64, 20), torch.randn(20, 64), torch.arange(40), torch.randn(4, 3), "mean", 7]
    a, b, index, small, *rest = shrunk(args)

    assert (a @ b).shape == (5, 5)
    assert index.shape == (4,)
    assert int(index.max()) < 3
    assert torch.equal(small, args[3])
    assert rest == ["mean", 7]


def test_copies_are_double_and_off_the_kinks() -> None:
    """No element is 0, none is far from what it was, and what takes no gradient counts for nothing."""
    x = torch.tensor([0.0, -1.0, 2.0], requires_grad=True)
    moved, flag = in_double_precision([x, torch.tensor([True])])

    assert moved.dtype is torch.float64
    assert (moved != x).all()
    assert (moved - x).abs().max() < 3e-3
    assert moved.requires_grad
    assert flag.dtype is torch.bool
    assert num_elements([moved, flag, torch.ones(9)]) == 3


class Pair(torch.autograd.Function):
    """A product whose backward forgets the second factor."""

    @staticmethod
    def forward(ctx: Any, factor: Any, x: Any, y: Any) -> Any:
        """Multiply."""
        ctx.save_for_backward(x, y)
        ctx.factor = factor
        return factor * x * y

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        """Give nothing to y."""
        _, y = ctx.saved_tensors
        return None, grad * ctx.factor * y, None


class Split(torch.autograd.Function):
    """Two results, one of them without a gradient, and a context that is set up apart."""

    @staticmethod
    def forward(x: Any) -> Any:
        """Double, and say what is positive."""
        return 2 * x, x > 0

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep nothing."""
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx: Any, grad: Any, _other: Any) -> Any:
        """Lose a half."""
        return grad


class Greedy(Scale):
    """Changes what it is given."""

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        """Write to the gradient."""
        return grad.mul_(2)


class Stored(Scale):
    """Uses a value without a history."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        """Square."""
        ctx.x = x.detach()
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        """Use it."""
        return 2 * grad * ctx.x


class Raising(Scale):
    """Fails when it is differentiated twice, or at once."""

    num_allowed = 0

    @classmethod
    def backward(cls, ctx: Any, grad: Any) -> Any:
        """Fail with a message of two lines."""
        if grad.requires_grad or not cls.num_allowed:
            raise ValueError("no\nmore")
        return 2 * grad


class RaisingTwice(Raising):
    """Fails the second time."""

    num_allowed = 1


class Identity(Scale):
    """Returns its input, with a gradient of its own: a reversal."""

    slope = -1.0

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        """Return what it got."""
        return x.view_as(x)


@pytest.mark.parametrize(
    ("function", "verdict", "reason"),
    [
        (Greedy, "writes gradient", ""),
        (Identity, "surrogate", SURROGATE),
        (
            Stored, "wrong double backward",
            "Something that backward uses has no history: stored on ctx, detached, or from NumPy.",
        ),
        (Raising, "not checked", "it fails in double precision with ValueError: no"),
        (RaisingTwice, "wrong double backward", "It fails with ValueError: no."),
    ],
)  # fmt: skip
def test_other_verdicts(function: Any, verdict: str, reason: str) -> None:
    """Each with its reason, of which the first line is shown."""
    found = checked(function)

    assert (found.name, found.verdict, found.reason, found.slopes) == (function.__name__, verdict, reason, ())


def test_each_argument_has_its_slope() -> None:
    """By its name, where it stands among the others; one without a gradient has the slope 0 in backward."""
    x, y = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
    first, second = check_function(CustomCall(Pair, (2.0, x, y), {})).slopes
    (only,) = check_function(CustomCall(Split, (x,), {})).slopes

    assert (first.argument, second.argument, only.argument) == ("x", "y", "x")
    assert first.numeric == pytest.approx(first.backward, rel=1e-6)
    assert first.numeric != 0
    assert second.backward == 0
    assert abs(second.numeric) > 1e-3
    assert only.numeric == pytest.approx(2 * only.backward, rel=1e-6)


def test_complex_arguments_have_no_slopes() -> None:
    """A direction would be two."""
    x = torch.randn(3, requires_grad=True, dtype=torch.complex64)
    found = check_function(CustomCall(WrongScale, (x,), {}))

    assert (found.verdict, found.slopes) == ("wrong backward", ())


def test_nothing_to_check() -> None:
    """No argument requires a gradient, or it has no elements."""
    for x in (torch.randn(3), torch.randn(0, requires_grad=True)):
        found = check_function(CustomCall(Scale, (x,), {}))
        assert (found.verdict, found.reason) == ("not checked", "none of its arguments requires a gradient")


class ReadsNumber(Scale):
    """Looks at a number in backward, which a batch of gradients has not; and is never called without a gradient."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        """Double."""
        ctx.set_materialize_grads(False)
        return 2 * x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        """Double what is not huge."""
        return 2 * grad if grad.sum().item() < 1e30 else None


class Talkative(Scale):
    """Fails with many words."""

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        """Fail."""
        raise ValueError("x" * 300)


def test_what_few_programs_need_is_not_asked_for() -> None:
    """That backward computes many gradients at once, or runs without any."""
    assert checked(ReadsNumber).verdict == "correct"


def test_long_reasons_are_cut() -> None:
    """After 200 characters."""
    assert checked(Talkative).reason == f"it fails in double precision with ValueError: {'x' * 200}"


@pytest.mark.parametrize(("size", "is_fast"), [(100, False), (101, True)])
def test_many_elements_are_checked_in_one_direction(
    monkeypatch: pytest.MonkeyPatch, size: int, *, is_fast: bool
) -> None:
    """Up to a hundred each by itself."""
    modes: list[bool] = []

    class Exact(Scale):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            assert x.numel() == size
            return 2 * x

    def note(*_args: object, fast_mode: bool, **_options: object) -> None:
        modes.append(fast_mode)

    for name in ("gradcheck", "gradgradcheck"):
        monkeypatch.setattr(gradcheck, name, note)

    assert check_function(CustomCall(Exact, (torch.randn(size, requires_grad=True),), {})).verdict == "correct"
    assert modes == [is_fast] * 2


class Picky(Scale):
    """Takes no gradient but 1."""

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        """Fail for others."""
        if not bool((grad == 1).all()):
            raise ValueError("only ones\nplease")
        return 2 * grad


class Bounded(Scale):
    """Takes no number above the one that it got first."""

    highest = 0.0

    @classmethod
    def forward(cls, ctx: Any, x: Any) -> Any:
        """Fail for others."""
        cls.highest = cls.highest or float(x.max())
        if float(x.max()) > cls.highest:
            raise ValueError("too large")
        return 2 * x


class FailsLater(Scale):
    """Takes a gradient as often as is needed to find that it does not write to it."""

    num_calls = 0

    @classmethod
    def backward(cls, ctx: Any, grad: Any) -> Any:
        """Fail then."""
        cls.num_calls += 1
        if cls.num_calls > 2:
            raise ValueError("enough")
        return 2 * grad


class Once(Scale):
    """Cannot be differentiated twice, and says so."""

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]  # torch's
    def backward(ctx: Any, grad: Any) -> Any:
        """Leave the graph."""
        return 2 * grad.detach()


@pytest.mark.parametrize(
    ("function", "verdict", "reason"),
    [
        (Picky, "not checked", "it fails with other inputs or gradients: ValueError: only ones"),
        (Bounded, "not checked", "it fails with other inputs or gradients: ValueError: too large"),
        (FailsLater, "not checked", "its backward fails with ValueError: enough"),
        (Once, "correct", ""),
    ],
)
def test_errors_of_the_program_do_not_end_the_check(function: Any, verdict: str, reason: str) -> None:
    """A Function may refuse numbers that it does not get in the program, or to be differentiated twice."""
    found = checked(function)

    assert (found.verdict, found.reason) == (verdict, reason)


def test_arguments_that_are_no_tensors_are_kept_as_they_are() -> None:
    """With their places."""
    x, y = torch.ones(2, requires_grad=True), torch.ones(2)
    with CustomCalls() as calls:
        Pair.apply(2.0, x, y)
    call = calls.take(f"{__name__}.Pair")

    assert call is not None
    assert call.args[0] == 2.0
    assert [one.requires_grad for one in call.args[1:]] == [True, False]


def test_functions_that_were_not_checked_are_noted() -> None:
    """With the reason; a correct one is not mentioned."""
    right = CheckedFunction(name="Swish", verdict="correct")
    unchecked = CheckedFunction(name="Noise", verdict="not checked", reason="its results differ from call to call")

    assert unchecked_notes([right, unchecked], {"Right"}) == (
        "Noise was not checked: its results differ from call to call.",
    )
    assert unchecked_notes([], {"Right"}) == ()
    assert unchecked_notes([], ()) == ("No custom autograd.Function ran: --gradcheck had nothing to check.",)
