"""Rows with several labels, given to a loss that wants one class of each.

NOTE [Several ones in a row]
cross_entropy takes the probabilities of classes, which add up to one. With several ones in a row it pulls each of these
scores up against all others, and no score can say "this one, too". Its floor is far above 0 and nothing says which
labels an example has. Mixed labels are fractions, and a square of scores compares a batch with itself, where each
example may have several positives.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from msgspec import Struct

from gradinspect.checks.evidence.arguments.given import argument
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.evidence.values.result_states import SizeLimit
from gradinspect.checks.facts.targets import SeveralLabels
from gradinspect.checks.facts.value_flow import OUTSIDE
from gradinspect.graph import Frame
from gradinspect.recording.transparency.own_errors import OwnErrors
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.originals import ops

MOST_ELEMENTS = 1 << 18
LEAST_SHARE = 0.1  # of the rows that have several
_MATRIX = 2


class _Seen(Struct):
    """The targets of all calls on a line."""

    made: int | None
    num_rows: int = 0
    num_several: int = 0
    most: int = 0
    is_of_ones: bool = True


class SeveralLabelLog:
    """Looks at the targets of cross_entropy. NOTE [Several ones in a row]."""

    functions = frozenset(("cross_entropy",))

    def __init__(self, flow: Dataflow, errors: OwnErrors) -> None:
        """Share the calls that made them; what is too large is counted."""
        self._flow = flow
        self._limit = SizeLimit(errors, "target of a loss", MOST_ELEMENTS)
        self._seen: dict[int | None, _Seen] = {}

    def note(self, _loss: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call of the loss, given the frame that it is on."""
        target = argument(args, kwargs, 1, "target")
        if not _is_matrix(target) or target.shape[0] == target.shape[1] or not self._limit.allows(target, number):
            return
        made = self._flow.read(target).call
        seen = self._seen.setdefault(number, _Seen(None if made == OUTSIDE else self._flow.calls[made].frame))
        with unobserved():
            values = ops.detach(target)
            ones = ops.eq(values, 1)
            of_rows = ops.sum(ones, 1)
            seen.is_of_ones = seen.is_of_ones and bool(ops.item(ops.all(ops.logical_or(ones, ops.eq(values, 0)))))
            seen.num_rows += target.shape[0]
            seen.num_several += int(ops.item(ops.sum(ops.gt(of_rows, 1))))
            seen.most = max(seen.most, int(ops.item(ops.max(of_rows))))

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[SeveralLabels]:
        """Yield the lines whose targets are ones and zeros, with several ones in some rows."""
        for number, seen in self._seen.items():
            if seen.is_of_ones and seen.num_several > LEAST_SHARE * seen.num_rows:
                yield SeveralLabels(
                    num_rows=seen.num_rows, num_several=seen.num_several, most=seen.most,
                    made=frame_of(seen.made), used=frame_of(number),
                )  # fmt: skip


def _is_matrix(target: Any) -> bool:
    is_plain = type(target) is torch.Tensor and target.is_cpu and ops.is_floating_point(target)
    return is_plain and ops.dim(target) == _MATRIX and min(target.shape) > 1
