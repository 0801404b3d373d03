"""Similarities of a batch with itself that a loss takes for scores, with those of each example to itself.

The matrix is symmetric, the largest value of each row is on the diagonal, and no target is: the example itself is among
the classes of its row, and wins, whatever the encoder learns. Two views of a batch make a matrix that is not symmetric,
and their targets are on the diagonal.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from msgspec import Struct

from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.evidence.values.result_states import SizeLimit
from gradinspect.checks.facts.values import SelfSimilarity
from gradinspect.graph import Frame
from gradinspect.recording.transparency.own_errors import OwnErrors
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.originals import ops

LEAST_CALLS = 3  # of a line
MOST_CALLS = 100
LEAST_ROWS = 3
MOST_ELEMENTS = 262_144


class _Seen(Struct):
    """All calls on a line."""

    made: int | None = None  # the frame of the call that made the scores of the first
    num_rows: int = 0
    num_calls: int = 0
    share: float = 0.0  # of the softmax on the diagonal, at the last call
    is_self: bool = True


class SimilarityLog:
    """Looks at the scores of cross_entropy."""

    functions = frozenset(("cross_entropy",))

    def __init__(self, flow: Dataflow, errors: OwnErrors) -> None:
        """Share the calls that made them; what is too large is counted."""
        self._flow = flow
        self._limit = SizeLimit(errors, "table of scores", MOST_ELEMENTS)
        self._seen: dict[int | None, _Seen] = {}

    def note(self, _function: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call, given the frame that it is on."""
        given: dict[str, Any] = dict(zip(("input", "target"), args, strict=False)) | dict(kwargs)
        scores: Any = given.get("input")
        target: Any = given.get("target")
        seen = self._seen.setdefault(number, _Seen())
        if not seen.is_self or seen.num_calls >= MOST_CALLS:
            return
        if not (_is_square(scores, target) and _names_no_row(target) and self._limit.allows(scores, number)):
            seen.is_self = False
            return
        if not seen.num_calls:
            seen.made = self._flow.made_at(scores)
        seen.num_calls, seen.num_rows = seen.num_calls + 1, len(target)
        with unobserved():
            seen.is_self = _is_self(ops.detach(scores))
            seen.share = ops.item(ops.mean(ops.diagonal(ops.softmax(ops.detach(scores), 1))))

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[SelfSimilarity]:
        """Yield the lines where it was so in every call."""
        for number, seen in self._seen.items():
            if seen.is_self and seen.num_calls >= LEAST_CALLS:
                yield SelfSimilarity(
                    num_rows=seen.num_rows,
                    num_calls=seen.num_calls,
                    share=seen.share,
                    made=frame_of(seen.made),
                    used=frame_of(number),
                )


def _is_square(scores: Any, target: Any) -> bool:
    """Return whether scores have a class for each row, and targets are classes."""
    if type(scores) is not torch.Tensor or type(target) is not torch.Tensor or not scores.requires_grad:
        return False
    rows = scores.shape[0] if len(scores.shape) == 2 else 0
    is_matrix = rows >= LEAST_ROWS and scores.shape[1] == rows and target.shape == (rows,)
    is_cpu = scores.is_cpu and target.is_cpu and target.dtype == torch.int64
    return is_matrix and is_cpu


def _names_no_row(target: torch.Tensor) -> bool:
    """Return whether no row is about itself."""
    with unobserved():
        return not ops.item(ops.any(ops.eq(target, ops.arange(len(target)))))


def _is_self(scores: torch.Tensor) -> bool:
    """Return whether each row is about the example of its column, and its largest score is that with itself."""
    largest, diagonal = ops.amax(scores, 1), ops.diagonal(scores)
    is_largest = ops.allclose(diagonal, largest, rtol=1e-4, atol=1e-6)
    return bool(is_largest and ops.allclose(scores, ops.t(scores), rtol=1e-4, atol=1e-5))
