"""Cosines that a cross entropy gets as they are, whose differences are too small for it.

NOTE [Scores between -1 and 1]
The product of vectors of length 1 lies between -1 and 1, so the best score is e**2 times as likely as the worst: with
100 classes the loss cannot fall below 2.67 of the 4.61 that guessing gives. Scores are to be divided by a temperature
first. That both factors are normalized is known from the calls; a number that the product is multiplied by shows in the
scores themselves, and one that is learned grows.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import exp, log
from typing import Any

import torch
from msgspec import Struct

from gradinspect.checks.evidence.arguments.given import argument
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.evidence.values.result_states import is_small_and_readable
from gradinspect.checks.facts.targets import CloseScores
from gradinspect.checks.facts.value_flow import OUTSIDE, first_behind
from gradinspect.graph import Frame
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.originals import ops

LEAST_CALLS = 2  # of a line
LEAST_FLOOR = 0.3  # of the loss of guessing
_PRODUCTS = frozenset(("matmul", "rmatmul", "mm", "linear", "einsum", "bmm"))
_SHAPES = frozenset((
    "t", "T", "mT", "transpose", "permute", "view", "reshape", "flatten", "contiguous", "squeeze", "unsqueeze",
))  # fmt: skip
_SCALES = frozenset(("mul", "rmul", "div", "truediv"))
_MATRIX = 2
MOST_CALLS = 6
MOST_ELEMENTS = 65_536
_LARGEST = 1.05  # of a cosine, with rounding


class _Seen(Struct):
    """All calls on a line."""

    num_calls: int = 0
    num_classes: int = 0
    made: int | None = None  # the frame of the product
    is_close: bool = True


class CloseScoreLog:
    """Looks at the scores of cross_entropy. NOTE [Scores between -1 and 1]."""

    functions = frozenset(("cross_entropy",))

    def __init__(self, flow: Dataflow) -> None:
        """Share the calls that made the scores."""
        self._flow = flow
        self._seen: dict[int | None, _Seen] = {}

    def note(self, _function: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call of the loss, given the frame that it is on."""
        scores: Any = argument(args, kwargs, 0, "input")
        if type(scores) is not torch.Tensor or not scores.requires_grad or len(scores.shape) != _MATRIX:
            return
        seen = self._seen.setdefault(number, _Seen())
        seen.num_calls += 1
        seen.num_classes = int(scores.shape[1])
        if seen.is_close and seen.num_calls <= MOST_CALLS:
            seen.made = self._cosines(self._flow.read(scores).call)
            seen.is_close = seen.made is not None and _are_cosines(scores)

    def _cosines(self, number: int) -> int | None:
        """Return the frame of a product of normalized vectors."""
        calls = self._flow.calls
        number = first_behind(calls, number, _SHAPES | _SCALES)
        if number == OUTSIDE or calls[number].name.strip("_") not in _PRODUCTS or len(calls[number].reads) != 2:
            return None
        factors = [first_behind(calls, read.call, _SHAPES) for read in calls[number].reads]
        are_normal = all(one != OUTSIDE and calls[one].name == "normalize" for one in factors)
        return calls[number].frame if are_normal else None

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[CloseScores]:
        """Yield the losses that cannot come near zero."""
        for number, seen in self._seen.items():
            if not seen.is_close or seen.num_calls < LEAST_CALLS or seen.num_classes < 2:
                continue
            floor = log(1 + (seen.num_classes - 1) * exp(-2))
            if floor >= LEAST_FLOOR * log(seen.num_classes):
                yield CloseScores(
                    num_classes=seen.num_classes,
                    floor=floor,
                    made=frame_of(seen.made),
                    used=frame_of(number),
                )


def _are_cosines(scores: torch.Tensor) -> bool:
    if not scores.is_cpu or not is_small_and_readable(scores, MOST_ELEMENTS):  # to read others would wait
        return False
    with unobserved():
        return bool(ops.item(ops.max(ops.abs(ops.detach(scores)))) <= _LARGEST)
