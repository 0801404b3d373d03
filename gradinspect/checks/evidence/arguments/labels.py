"""Targets whose values a loss does not know, such as 0 where it wants 1 and -1.

NOTE [Labels on purpose]
A pair without a preference may have a 0 among labels that are 1 and -1, and so may an example that a mask takes out of
a loss of single elements. So 0 counts where no -1 was seen in any call on that line, and what is outside 0 and 1 only
where the loss is reduced, without weights.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from typing import Any, Literal

import torch
from msgspec import Struct

from gradinspect.checks.evidence.arguments.given import argument, reduction_of
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.evidence.values.result_states import SizeLimit
from gradinspect.checks.facts.value_flow import OUTSIDE
from gradinspect.checks.facts.values import UnknownLabels
from gradinspect.graph import Frame
from gradinspect.recording.transparency.own_errors import OwnErrors
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.originals import ops

_Wanted = Literal["signs", "probabilities"]
_TARGETS: dict[str, tuple[int, _Wanted]] = {  # the place of the target among the arguments
    "cosine_embedding_loss": (2, "signs"),
    "margin_ranking_loss": (2, "signs"),
    "hinge_embedding_loss": (1, "signs"),
    "soft_margin_loss": (1, "signs"),
    "binary_cross_entropy_with_logits": (1, "probabilities"),
}
MOST_ELEMENTS = 1 << 20


class _Seen(Struct):
    """The labels of all calls on a line."""

    loss: str
    wanted: _Wanted
    made: int | None  # the frame of the call that made those of the first one
    least: float = inf
    most: float = -inf
    has_between: bool = False  # values other than -1, 0 and 1


class LabelLog:
    """Looks at the targets of losses."""

    functions = frozenset(_TARGETS)

    def __init__(self, flow: Dataflow, errors: OwnErrors) -> None:
        """Share the calls that made them; what is too large is counted."""
        self._flow = flow
        self._limit = SizeLimit(errors, "target of a loss", MOST_ELEMENTS)
        self._seen: dict[int | None, _Seen] = {}

    def note(self, loss: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call of a loss, given the frame that it is on. NOTE [Labels on purpose]."""
        place, wanted = _TARGETS[loss]
        target = argument(args, kwargs, place, "target")
        if type(target) is not torch.Tensor or not target.is_cpu:
            return
        is_reduced = reduction_of(loss, args, kwargs) != "none" and kwargs.get("weight") is None
        if (wanted == "probabilities" and not is_reduced) or not self._limit.allows(target, number):
            return
        made = self._flow.read(target).call
        seen = self._seen.setdefault(
            number, _Seen(loss, wanted, None if made == OUTSIDE else self._flow.calls[made].frame)
        )
        with unobserved():
            values = ops.to(ops.detach(target), torch.float64)
            seen.least = min(seen.least, ops.item(ops.min(values)))
            seen.most = max(seen.most, ops.item(ops.max(values)))
            is_whole = ops.eq(values, ops.round(values))
            seen.has_between = seen.has_between or not ops.item(ops.all(is_whole)) or seen.most > 1

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[UnknownLabels]:
        """Yield the labels that a loss does not know."""
        for number, seen in self._seen.items():
            is_zero = seen.wanted == "signs" and seen.least == 0 and seen.most == 1 and not seen.has_between
            is_outside = seen.wanted == "probabilities" and (seen.least < 0 or seen.most > 1)
            if is_zero or is_outside:
                made, used = frame_of(seen.made), frame_of(number)
                yield UnknownLabels(
                    loss=seen.loss, wants_signs=is_zero, least=seen.least, most=seen.most, made=made, used=used
                )
