"""Check the backward of a custom autograd.Function in a few random directions: sign, scale and shape.

NOTE [Surrogate gradients]
Where forward is constant, a gradient other than zero is there on purpose: beyond the bounds of a clamp,
or for the value that is rounded to a learned step size. So outputs that do not move get no weight, all weights are
positive, as guided backpropagation wants them, and a Function with a gradient for an argument that its result does not
depend on at all is left alone. What remains is reported if it is far off in every direction: an implicit derivative is
not exact.

NOTE [Checks in copies]
The program did not ask for its code to be run again. So that happens in a copy of the process, on copies of arguments.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress

import msgspec
import torch

from gradinspect.checks.evidence.custom_functions.calls import CustomCall
from gradinspect.checks.evidence.custom_functions.gradcheck import (
    SURROGATE,
    CannotBeCheckedError,
    Ready,
    argument_names,
    failed_with,
    inputs_of,
    is_intentional,
    isolated,
    moved_args,
    prepare,
    random_like,
)
from gradinspect.checks.facts.values import CheckedFunction, Slope
from gradinspect.errors import text_of
from gradinspect.runner.forked import run_in_copy
from gradinspect.torch_api.patching.originals import gradients_of, ops

SCALES = (3.0, 10.0, 30.0)  # of the gradient in each direction: backward may ignore what it is given
MOST_FUNCTIONS = 8
MOST_SECONDS = 5.0
_STEPS = (1e-6, 1e-5)  # if they disagree, it is not smooth there, or computes in lower precision
_AGREE = 1e-2


def checked_in_copy(calls: Sequence[CustomCall]) -> list[CheckedFunction]:
    """Check Functions in a copy of this process; those that do not come back in time were not checked."""

    def check() -> bytes:
        torch.set_num_threads(1)  # the threads of the pool are not in the copy
        return msgspec.json.encode([check_quickly(call) for call in calls])

    sent = b""
    if hasattr(os, "fork"):
        with suppress(OSError):  # no room for another process
            sent = run_in_copy(check, seconds=MOST_SECONDS)
    return msgspec.json.decode(sent, type=list[CheckedFunction]) if sent else []


def check_quickly(call: CustomCall) -> CheckedFunction:
    """Check one Function in a few directions."""
    name = call.function.__name__
    with isolated(call.args):
        try:
            ready = prepare(call)
            rounds = [] if is_intentional(ready) else [_round(call, ready, *one) for one in enumerate(SCALES)]
            if not any(slope.numeric or slope.backward for slopes in rounds for slope in slopes):
                return CheckedFunction(name=name, verdict="surrogate", reason=SURROGATE)
        except CannotBeCheckedError as error:
            return CheckedFunction(name=name, verdict="not checked", reason=text_of(error))
        except Exception as error:  # anything that the user's code raises for other numbers than its own
            return CheckedFunction(name=name, verdict="not checked", reason=failed_with(error))
    slopes = tuple(slopes[0] for slopes in zip(*rounds, strict=True) if all(slope.is_far_off for slope in slopes))
    return CheckedFunction(name=name, verdict="wrong backward" if slopes else "one direction", slopes=slopes)


def _round(call: CustomCall, ready: Ready, seed: int, scale: float) -> list[Slope]:
    """Measure the slope of each argument in one direction; none if there is a surrogate among them."""
    generator = torch.Generator().manual_seed(seed)
    inputs, outputs = inputs_of(ready), ready.run(*ready.args)
    if any(ops.is_complex(value) for value in (*inputs, *outputs)):
        raise CannotBeCheckedError("it is complex")
    directions = {id(value): random_like(value, generator) for value in inputs}
    weights = _weights(ready, outputs, directions, generator, scale)
    gradients = gradients_of(outputs, inputs, weights, allow_unused=True)
    names, slopes = argument_names(call), []
    for value, gradient in zip(inputs, gradients, strict=True):
        direction = directions[id(value)]
        backward = 0.0 if gradient is None else ops.item(ops.sum(ops.mul(gradient, direction)))
        numeric = _numeric(ready, value, direction, weights)
        if numeric == 0.0 and backward:
            raise CannotBeCheckedError("it has a gradient for what its result does not depend on")
        place = next(index for index, item in enumerate(ready.args) if item is value)
        slopes.append(Slope(argument=names.get(place, f"argument {place}"), numeric=numeric, backward=backward))
    return slopes


def _weights(
    ready: Ready, outputs: Sequence[torch.Tensor], directions: dict[int, torch.Tensor], generator: torch.Generator,
    scale: float,
) -> list[torch.Tensor]:  # fmt: skip
    """Draw the gradient of each output, where that moves. NOTE [Surrogate gradients]."""
    moved = _moved_by(ready, directions, _STEPS[0])
    drawn = [ops.mul(ops.add(ops.abs(random_like(one, generator)), 0.5), scale) for one in outputs]
    still = [ops.eq(ops.detach(one), ops.detach(two)) for one, two in zip(outputs, moved, strict=True)]
    return [ops.masked_fill(weight, mask, 0.0) for weight, mask in zip(drawn, still, strict=True)]


def _moved_by(ready: Ready, directions: dict[int, torch.Tensor], step: float) -> tuple[torch.Tensor, ...]:
    return ready.run(*moved_args(ready, {key: ops.mul(one, step) for key, one in directions.items()}))


def _numeric(ready: Ready, value: torch.Tensor, direction: torch.Tensor, weights: Sequence[torch.Tensor]) -> float:
    """Measure by central differences.

    Raises:
        CannotBeCheckedError: Two steps do not agree.
    """
    first, second = (_difference(ready, {id(value): direction}, step, weights) for step in _STEPS)
    if not abs(first - second) <= _AGREE * max(abs(first), abs(second)) + 1e-6:
        raise CannotBeCheckedError("it is not smooth there, or computes in lower precision")
    return second


def _difference(
    ready: Ready, directions: dict[int, torch.Tensor], step: float, weights: Sequence[torch.Tensor]
) -> float:
    def weighted(by: float) -> Iterator[float]:
        for weight, one in zip(weights, _moved_by(ready, directions, by), strict=True):
            yield ops.item(ops.sum(ops.mul(weight, ops.detach(one))))

    return (sum(weighted(step)) - sum(weighted(-step))) / (2 * step)
