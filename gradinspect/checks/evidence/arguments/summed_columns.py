"""Gradients of several columns that `autograd.grad` has summed into one, which is used as if it were that of each.

NOTE [One column for several]
`autograd.grad(u, t, torch.ones_like(u))` sums over all of u. Rows that do not depend on each other keep their own
gradients, which is why people write it; columns do not, as all of them depend on the same t. The sum is meant where
it is used as one column. Broadcast against a tensor of u's shape it stands beside each column, and is the gradient
of none.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch

from gradinspect.checks.evidence.values.result_states import SizeLimit
from gradinspect.checks.facts.values import SummedColumns
from gradinspect.graph import Frame
from gradinspect.recording.transparency.own_errors import OwnErrors
from gradinspect.runner.engine import EngineCall
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.originals import ops
from gradinspect.torch_api.weak import HiddenRef

MOST_ELEMENTS = 65_536
MOST_SUMS = 10_000


class _Sum(NamedTuple):
    """A gradient of one column."""

    gradient: HiddenRef
    shape: tuple[int, ...]  # of what it is the gradient
    frame: int | None


_OPERATORS = frozenset((
    "add", "sub", "subtract", "rsub", "mul", "multiply", "div", "divide", "true_divide", "truediv", "mse_loss",
    "l1_loss", "smooth_l1_loss", "huber_loss",
))  # fmt: skip


class SummedColumnLog:
    """Looks at what is done with gradients of one column. NOTE [One column for several]."""

    def __init__(self, errors: OwnErrors) -> None:
        """Count what is too large, or too much."""
        self._errors = errors
        self._limit = SizeLimit(errors, "argument grad_outputs", MOST_ELEMENTS)
        self.sums: dict[int, _Sum] = {}  # by the id of the gradient
        self._used: dict[tuple[int | None, int | None], _Sum] = {}  # by the lines of the gradient and of its use

    def returned(self, call: EngineCall, gradients: object, number: int | None) -> None:
        """Look at what autograd.grad has returned, given the frame that it is on."""
        if not isinstance(gradients, tuple | list) or len(call.outputs) != 1:
            return
        shape = self._shape_summed(call.outputs[0], call.gradients, number)
        if shape is None:
            return
        for one in gradients:
            if type(one) is torch.Tensor and tuple(one.shape) == (shape[0], 1):
                self._remember(one, shape, number)

    def _shape_summed(self, output: Any, given: Sequence[Any], number: int | None) -> tuple[int, ...] | None:
        """Return the shape of what a gradient is taken of, if the gradient sums over several columns of it."""
        ones: Any = given[0] if len(given) == 1 else None
        if type(output) is not torch.Tensor or type(ones) is not torch.Tensor or ones.shape != output.shape:
            return None
        if len(output.shape) != 2 or min(output.shape) < 2 or not self._limit.allows(ones, number):
            return None
        with unobserved():
            is_sum = bool(ops.item(ops.all(ops.eq(ones, 1))))
        return tuple(output.shape) if is_sum else None

    def _remember(self, gradient: torch.Tensor, shape: tuple[int, ...], number: int | None) -> None:
        if len(self.sums) >= MOST_SUMS:
            for key in [key for key, one in self.sums.items() if one.gradient() is None]:
                del self.sums[key]
        if len(self.sums) >= MOST_SUMS:
            self._errors.pass_over("gradient of one column", f"after the first {MOST_SUMS:,}")
            return
        self.sums[id(gradient)] = _Sum(HiddenRef(gradient), shape, number)

    def used(self, function: str, inputs: Sequence[torch.Tensor], number: int | None) -> None:
        """Look at an operator on two tensors or more, given the frame that it is on."""
        if function not in _OPERATORS:
            return
        for one, other in (inputs[:2], inputs[1::-1]):
            known = self.sums.get(id(one))
            if known is None or known.gradient() is not one or type(other) is not torch.Tensor:
                continue
            if tuple(other.shape) == known.shape:
                self._used.setdefault((known.frame, number), known)

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[SummedColumns]:
        """Yield each line that takes such a gradient, with the first that uses it."""
        seen = set[int | None]()
        for (graded, used), one in self._used.items():
            if graded not in seen:
                seen.add(graded)
                yield SummedColumns(shape=one.shape, graded=frame_of(graded), used=frame_of(used))
