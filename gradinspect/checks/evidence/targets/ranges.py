"""Targets that the last function of a model cannot return: negative ones of a relu, large ones of a sigmoid.

NOTE [Out of reach]
A relu returns nothing below 0, a sigmoid and a softmax nothing outside of 0 and 1, a tanh nothing outside of -1 and 1.
Where a loss compares that with targets of which many lie well outside, no weight makes the difference small. A few that
lie just outside are noise of the data, and what a tensor of targets holds once may be padding.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from typing import Any

import torch
from msgspec import Struct

from gradinspect.checks.evidence.arguments.given import argument
from gradinspect.checks.evidence.objectives.regressions import REGRESSIONS, made_by
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.evidence.values.result_states import SizeLimit
from gradinspect.checks.facts.targets import OutOfReach
from gradinspect.checks.facts.value_flow import OUTSIDE
from gradinspect.graph import Frame
from gradinspect.recording.transparency.own_errors import OwnErrors
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.originals import ops

LEAST_CALLS = 3  # of a line
MOST_CALLS = 50
MOST_ELEMENTS = 262_144
LEAST_SHARE = 0.1  # of the targets of each call
_MARGIN = 0.05  # of the width of a range, or of the largest target
RANGES = {
    "relu": (0.0, inf), "sigmoid": (0.0, 1.0), "softmax": (0.0, 1.0), "tanh": (-1.0, 1.0), "softplus": (0.0, inf),
    "log_softmax": (-inf, 0.0), "logsigmoid": (-inf, 0.0), "relu6": (0.0, 6.0), "hardtanh": (-1.0, 1.0),
}  # fmt: skip


class _Seen(Struct):
    """All calls of a loss on a line."""

    op: str
    loss: str
    made: int | None
    layer: int | None  # the frame that made it, if a layer did
    least: float = inf
    most: float = -inf
    share: float = 1.0  # the smallest of all calls
    num_calls: int = 0


class RangeLog:
    """Looks at regressions. NOTE [Out of reach]."""

    functions = REGRESSIONS

    def __init__(self, flow: Dataflow, errors: OwnErrors) -> None:
        """Share the calls that made the predictions; what is too large is counted."""
        self._flow = flow
        self._limit = SizeLimit(errors, "target of a regression", MOST_ELEMENTS)
        self._seen: dict[int | None, _Seen] = {}

    def note(self, loss: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call that has returned, given the frame that it is on."""
        first: Any = argument(args, kwargs, 0, "input")
        second: Any = argument(args, kwargs, 1, "target")
        sides = ((first, second), (second, first))
        for prediction, target in sides:
            if type(prediction) is not torch.Tensor or type(target) is not torch.Tensor:
                return
            if prediction.requires_grad and not target.requires_grad:
                self._compare(loss, prediction, target, number)

    def _compare(self, loss: str, prediction: torch.Tensor, target: torch.Tensor, number: int | None) -> None:
        made = made_by(self._flow.calls, self._flow.read(prediction))
        op = "" if made == OUTSIDE else self._flow.calls[made].name.strip("_")
        frame = None if made == OUTSIDE else self._flow.calls[made].frame
        seen = self._seen.setdefault(number, _Seen(op, loss, frame, self._flow.origins.of_call(made)))
        is_one = op == seen.op and op in RANGES and target.is_cpu
        if not is_one or seen.share < LEAST_SHARE:
            seen.share = 0.0
            return
        if seen.num_calls >= MOST_CALLS or not self._limit.allows(target, number):
            return
        with unobserved():
            values = ops.to(ops.detach(target), torch.float64)
            seen.least = min(seen.least, ops.item(ops.min(values)))
            seen.most = max(seen.most, ops.item(ops.max(values)))
            low, high = RANGES[op]
            margin = _MARGIN * (high - low if high - low < inf else ops.item(ops.amax(ops.abs(values))))
            outside = ops.logical_or(ops.lt(values, low - margin), ops.gt(values, high + margin))
            seen.share = min(seen.share, ops.item(ops.mean(ops.to(outside, torch.float64))))
        seen.num_calls += 1

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[OutOfReach]:
        """Yield the lines where it was so in every call."""
        for number, seen in self._seen.items():
            if seen.share >= LEAST_SHARE and seen.num_calls >= LEAST_CALLS:
                yield OutOfReach(
                    op=seen.op, loss=seen.loss, least=seen.least, most=seen.most, share=seen.share,
                    num_calls=seen.num_calls, layer=frame_of(seen.layer), made=frame_of(seen.made),
                    used=frame_of(number),
                )  # fmt: skip
