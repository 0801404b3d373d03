"""Check the backward of a custom autograd.Function, and its double backward, against finite differences.

NOTE [Intentional gradients]
A backward need not be a derivative: a straight-through estimator passes gradients through a step function, whose
derivative is 0, and gradient reversal negates the gradient of an identity. If forward does not change when its inputs
change a little, or returns its input, the gradient is the only purpose of the Function, so it is correct by definition.
"""

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from io import StringIO
from random import getstate, setstate
from typing import Any, NamedTuple

import torch
from torch.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck

from gradinspect.checks.evidence.custom_functions.calls import CustomCall
from gradinspect.checks.evidence.custom_functions.shrinking import WORKABLE, in_double_precision, num_elements, shrunk
from gradinspect.checks.facts.values import CheckedFunction, GradcheckVerdict, Slope
from gradinspect.errors import text_of
from gradinspect.torch_api.patching.originals import gradients_of, ops
from gradinspect.torch_api.patching.silence import Silence
from gradinspect.torch_api.tensors import without_autocast

SLOW_ELEMENTS = 100  # up to which each derivative is measured separately
SURROGATE = "forward is a step function or returns its input, so nothing says which backward is right"
_STEP = 1e-6
_OPTIONS: dict[str, Any] = {"check_undefined_grad": False, "check_batched_grad": False, "nondet_tol": 1e-7}


class Ready(NamedTuple):
    """A Function, with arguments to check it on."""

    run: Callable[..., tuple[torch.Tensor, ...]]
    args: list[Any]


class CannotBeCheckedError(Exception):
    """Finite differences cannot be applied to a Function, for the given reason."""


def check_function(call: CustomCall) -> CheckedFunction:
    """Check one Function on copies of its recorded arguments. Changes no number of the program."""
    name = call.function.__name__
    with isolated(call.args):
        try:
            ready = prepare(call)
            if _writes_gradient(ready):
                return CheckedFunction(name=name, verdict="writes gradient")
            if is_intentional(ready):
                return CheckedFunction(name=name, verdict="surrogate", reason=SURROGATE)
            verdict, reason = _judge(ready, twice=not _is_once_differentiable(call.function))
            slopes = tuple(_slopes(call, ready)) if verdict == "wrong backward" else ()
        except CannotBeCheckedError as error:
            return CheckedFunction(name=name, verdict="not checked", reason=text_of(error))
        except Exception as error:  # anything that the user's code raises for other numbers than its own
            return CheckedFunction(name=name, verdict="not checked", reason=failed_with(error))
    return CheckedFunction(name=name, verdict=verdict, reason=reason, slopes=slopes)


def failed_with(error: Exception) -> str:
    """Say that the user's code has failed on other numbers than its own."""
    return f"it fails with other inputs or gradients: {type(error).__name__}: {first_line(error)}"


def unchecked_notes(functions: Sequence[CheckedFunction], ran: Collection[str]) -> tuple[str, ...]:
    """Say which Functions could not be checked, and why, or that none of the program ran."""
    if not functions and not ran:
        return ("No custom autograd.Function ran: --gradcheck had nothing to check.",)
    return tuple(
        f"{function.name} was not checked: {function.reason}."
        for function in functions
        if function.verdict in ("not checked", "surrogate")
    )


@contextmanager
def isolated(args: Iterable[Any]) -> Iterator[None]:
    """Run the user's code again: with gradients, without autocast or output, restoring the random state.

    Of devices, that of the tensors among the arguments: torch warns where it would restore those of all.
    """
    state = getstate()
    found = {one.device for one in args if isinstance(one, torch.Tensor) and one.device.type not in {"cpu", "meta"}}
    try:
        with (
            ExitStack() as on_devices,
            torch.random.fork_rng(devices=()),
            torch.enable_grad(),
            without_autocast(),
            redirect_stdout(StringIO()),
            Silence(),
        ):
            for device in found:
                forked = torch.random.fork_rng(devices=(device.index or 0,), device_type=device.type)
                on_devices.enter_context(forked)
            yield
    finally:
        setstate(state)


def prepare(call: CustomCall) -> Ready:
    """Find arguments that the Function accepts in double precision: small ones, or else the recorded ones."""

    def run(*args: Any) -> tuple[torch.Tensor, ...]:
        outputs = call.function.apply(*args, **call.kwargs)
        found = outputs if isinstance(outputs, tuple | list) else (outputs,)
        return tuple(output for output in found if isinstance(output, torch.Tensor) and output.requires_grad)

    problem = "none of its arguments requires a gradient"
    for args in (shrunk(call.args), list(call.args)):
        if not 0 < num_elements(args) <= WORKABLE:
            continue
        try:
            ready = Ready(run, in_double_precision(args))  # MPS refuses it
            outputs = run(*ready.args)
            gradients = gradients_of(outputs, inputs_of(ready), [ops.ones_like(one) for one in outputs],
                                            allow_unused=True)  # fmt: skip
        except Exception as error:  # anything that the user's code raises
            problem = f"it fails in double precision with {type(error).__name__}: {first_line(error)}"
            continue
        _check_numbers(ready, outputs, gradients)
        return ready
    raise CannotBeCheckedError(problem)


def _check_numbers(ready: Ready, outputs: Sequence[torch.Tensor], gradients: Sequence[torch.Tensor | None]) -> None:
    if any(output.dtype not in (torch.float64, torch.complex128) for output in outputs):
        raise CannotBeCheckedError(f"it always returns {outputs[0].dtype}, which is too coarse for finite differences")
    given = [*outputs, *(gradient for gradient in gradients if gradient is not None)]
    if not all(bool(ops.item(ops.all(ops.isfinite(value)))) for value in given):
        raise CannotBeCheckedError("its result or its gradient is not finite here")
    again = ready.run(*ready.args)
    if any(not ops.equal(one, other) for one, other in zip(outputs, again, strict=True)):
        raise CannotBeCheckedError("its results differ from call to call")


def inputs_of(ready: Ready) -> list[torch.Tensor]:
    """List the arguments that require a gradient."""
    return [value for value in ready.args if isinstance(value, torch.Tensor) and value.requires_grad]


def first_line(error: Exception) -> str:
    """Return the first line of what an error says."""
    return (text_of(error).strip().splitlines() or [""])[0][:200]


def moved_args(ready: Ready, steps: dict[int, torch.Tensor]) -> list[Any]:
    """Copy the arguments, adding a step to those with these ids."""
    return [
        ops.requires_grad_(ops.detach(ops.add(value, steps[id(value)]))) if id(value) in steps else value
        for value in ready.args
    ]


def is_intentional(ready: Ready) -> bool:
    """Return whether forward is a step function or the identity. NOTE [Intentional gradients]."""
    outputs = [ops.detach(output) for output in ready.run(*ready.args)]
    inputs = inputs_of(ready)
    if all(any(one.shape == two.shape and ops.equal(one, two) for two in inputs) for one in outputs):
        return True
    steps = {id(value): ops.mul(ops.ones_like(value), 1e-6) for value in inputs}
    return all(ops.equal(one, two) for one, two in zip(outputs, ready.run(*moved_args(ready, steps)), strict=True))


def _writes_gradient(ready: Ready) -> bool:
    """Return whether backward changes the gradients that it receives, which others may still read."""
    generator = torch.Generator().manual_seed(0)
    outputs = ready.run(*ready.args)
    weights = [ops.to(random_like(output, generator), output.dtype) for output in outputs]
    before = [ops.clone(weight) for weight in weights]
    gradients_of(outputs, inputs_of(ready), weights, allow_unused=True)
    return any(not ops.equal(one, other) for one, other in zip(weights, before, strict=True))


def _is_once_differentiable(function: Any) -> bool:
    """Return whether a backward is marked as once_differentiable, so that torch refuses to differentiate it."""
    code = getattr(function.backward, "__code__", None)
    return bool(getattr(code, "co_filename", None) == torch.autograd.function.__file__)


def _judge(ready: Ready, *, twice: bool) -> tuple[GradcheckVerdict, str]:
    fast = num_elements(ready.args) > SLOW_ELEMENTS
    try:
        gradcheck(ready.run, ready.args, fast_mode=fast, **_OPTIONS)
    except GradcheckError as error:
        _check_precision(ready, fast=fast)
        return "wrong backward", first_line(error)
    except Exception as error:  # anything that the user's backward raises
        raise CannotBeCheckedError(f"its backward fails with {type(error).__name__}: {first_line(error)}") from None
    if not twice:
        return "correct", ""
    try:
        gradgradcheck(ready.run, ready.args, fast_mode=fast, **_OPTIONS)
    except GradcheckError:
        return (
            "wrong double backward",
            "Something that backward uses has no history: stored on ctx, detached, or from NumPy.",
        )
    except Exception as error:  # as above
        return "wrong double backward", f"It fails with {type(error).__name__}: {first_line(error)}."
    return "correct", ""


def _check_precision(ready: Ready, *, fast: bool) -> None:
    """Detect a forward that computes in lower precision: unlike a wrong backward, it passes with larger steps."""
    with suppress(GradcheckError):
        gradcheck(ready.run, ready.args, eps=1e-2, atol=1e-2, rtol=1e-1, fast_mode=fast, **_OPTIONS)
        raise CannotBeCheckedError("it computes in lower precision inside, which is too coarse for finite differences")


def _slopes(call: CustomCall, ready: Ready) -> Iterator[Slope]:
    """Measure the derivative with respect to each real argument, in one random direction."""
    generator = torch.Generator().manual_seed(0)
    outputs = ready.run(*ready.args)
    weights = [random_like(output, generator) for output in outputs]
    inputs = inputs_of(ready)
    if any(ops.is_complex(value) for value in (*inputs, *outputs)):
        return
    gradients = gradients_of(outputs, inputs, weights, allow_unused=True)
    names = argument_names(call)
    for value, gradient in zip(inputs, gradients, strict=True):
        direction = random_like(value, generator)

        def weighted(step: float, value: torch.Tensor = value, direction: torch.Tensor = direction) -> float:
            moved = ready.run(*moved_args(ready, {id(value): ops.mul(direction, step)}))
            pairs = zip(weights, moved, strict=True)
            return float(sum(ops.item(ops.sum(ops.mul(weight, ops.detach(one)))) for weight, one in pairs))

        place = next(index for index, item in enumerate(ready.args) if item is value)
        yield Slope(
            argument=names.get(place, f"argument {place}"),
            numeric=(weighted(_STEP) - weighted(-_STEP)) / (2 * _STEP),
            backward=0.0 if gradient is None else ops.item(ops.sum(ops.mul(gradient, direction))),
        )


def random_like(like: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Draw a direction."""
    return ops.to(ops.randn(like.shape, generator=generator, dtype=torch.float64), like.device)


def argument_names(call: CustomCall) -> dict[int, str]:
    """Map the positions of `apply` to parameters of forward, without ctx if there is no setup_context."""
    try:
        names = list(inspect.signature(call.function.forward).parameters)
    except (TypeError, ValueError):
        return {}
    has_context = call.function.setup_context is torch.autograd.Function.setup_context
    return dict(enumerate(names[1:] if has_context else names))
