"""Losses that are given their labels first and the scores of the model second.

NOTE [Labels and scores]
A loss may well be given a target with a graph, as where labels are learned. But labels that are all 0 or 1 have no
graph, and no model makes them: where they stand in the place of the scores, and something with a graph in theirs, the
two are exchanged. cross_entropy refuses integers there, so of its labels only those that are written as rows count.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from msgspec import Struct

from gradinspect.checks.evidence.arguments.given import argument
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.evidence.values.result_states import SizeLimit
from gradinspect.checks.facts.targets import ExchangedArguments
from gradinspect.graph import Frame
from gradinspect.recording.transparency.own_errors import OwnErrors
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.originals import ops

MOST_CALLS = 20  # of a line
MOST_ELEMENTS = 65_536


class _Seen(Struct):
    """All calls of a loss on a line."""

    loss: str
    made: int | None = None
    num_calls: int = 0
    are_exchanged: bool = True


class ExchangeLog:
    """Looks at the arguments of losses. NOTE [Labels and scores]."""

    functions = frozenset(("cross_entropy", "binary_cross_entropy", "binary_cross_entropy_with_logits"))

    def __init__(self, flow: Dataflow, errors: OwnErrors) -> None:
        """Share the calls that made them; what is too large is counted."""
        self._flow = flow
        self._limit = SizeLimit(errors, "argument of a loss", MOST_ELEMENTS)
        self._seen: dict[int | None, _Seen] = {}

    def note(self, loss: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call that has returned, given the frame that it is on."""
        seen = self._seen.setdefault(number, _Seen(loss))
        if not seen.are_exchanged or seen.num_calls >= MOST_CALLS:
            return
        first: Any = argument(args, kwargs, 0, "input")
        second: Any = argument(args, kwargs, 1, "target")
        seen.are_exchanged = self._are_exchanged(first, second, number)
        if seen.are_exchanged:
            seen.made = self._flow.made_at(second)
            seen.num_calls += 1

    def _are_exchanged(self, first: Any, second: Any, number: int | None) -> bool:
        if type(first) is not torch.Tensor or type(second) is not torch.Tensor or first.requires_grad:
            return False
        if not self._flow.read(second).leads_back or not first.is_cpu or not self._limit.allows(first, number):
            return False
        with unobserved():
            values = ops.detach(first)
            return bool(ops.item(ops.all(ops.logical_or(ops.eq(values, 0), ops.eq(values, 1)))))

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[ExchangedArguments]:
        """Yield the lines where it was so in every call."""
        for number, seen in self._seen.items():
            if seen.are_exchanged and seen.num_calls:
                yield ExchangedArguments(
                    loss=seen.loss, num_calls=seen.num_calls, made=frame_of(seen.made), used=frame_of(number)
                )
