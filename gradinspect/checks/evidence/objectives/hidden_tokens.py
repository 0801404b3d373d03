"""Losses that count the tokens that a model is given, and ignore exactly those that were hidden from it.

NOTE [Hidden tokens]
A masked language model is given a token for "hidden" at some places, and is asked for what was there. `labels[hidden] =
-100` in place of `labels[~hidden]` asks for what it is given: the loss falls to zero, and nothing is learned of the
hidden places. The ids that an embedding was given are compared with the labels, place by place. Padding is ignored as
well, but it stands at one end of a row; what was hidden stands between tokens.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from msgspec import Struct

from gradinspect.checks.evidence.arguments.given import argument
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.evidence.values.result_states import is_small_and_readable
from gradinspect.checks.facts.targets import HiddenIgnored
from gradinspect.checks.facts.value_flow import OUTSIDE, ancestors
from gradinspect.graph import Frame
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.originals import ops

LEAST_CALLS = 3  # of a line
MOST_CALLS = 6
MOST_ELEMENTS = 65_536
_IGNORED = -100
_IGNORE_INDEX = 4  # the place of an argument of cross_entropy()
_MOST_LOOKUPS = 4
_MATRIX = 2


class _Lookup(NamedTuple):
    call: int
    ids: torch.Tensor  # a copy
    frame: int | None


class _Seen(Struct):
    """All calls of a loss on a line."""

    num_calls: int = 0
    made: int | None = None  # the frame of the call that made the labels
    looked_up: int | None = None
    token: int = 0  # that stands for what is hidden
    is_so: bool = True


class HiddenTokenLog:
    """Looks at ids and labels. NOTE [Hidden tokens]."""

    functions = frozenset(("embedding", "cross_entropy"))

    def __init__(self, flow: Dataflow) -> None:
        """Share the calls that made the scores."""
        self._flow = flow
        self._lookups: list[_Lookup] = []
        self._seen: dict[int | None, _Seen] = {}

    def note(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call that has returned, given the frame that it is on."""
        given: Any = argument(args, kwargs, 0, "input")
        if function == "embedding":
            self._look_up(given, number)
        elif self._lookups and type(given) is torch.Tensor and given.requires_grad:
            ignored = argument(args, kwargs, _IGNORE_INDEX, "ignore_index")
            self._compare(given, argument(args, kwargs, 1, "target"), _IGNORED if ignored is None else ignored, number)

    def _look_up(self, ids: Any, number: int | None) -> None:
        is_batch = type(ids) is torch.Tensor and ops.dim(ids) == _MATRIX and not ops.is_floating_point(ids)
        if is_batch and len(self._seen) < MOST_CALLS and is_small_and_readable(ids, MOST_ELEMENTS):
            with unobserved():
                one = _Lookup(len(self._flow.calls), ops.clone(ids), number)
                self._lookups = [*self._lookups[1 - _MOST_LOOKUPS :], one]

    def _compare(self, scores: torch.Tensor, target: Any, ignored: int, number: int | None) -> None:
        seen = self._seen.setdefault(number, _Seen())
        if not seen.is_so or seen.num_calls >= MOST_CALLS:
            return
        made = self._flow.read(scores).call
        behind = ancestors(self._flow.calls, made, stops_at_leaves=True) if made != OUTSIDE else set()
        lookup = next((one for one in self._lookups if one.call in behind and _fits(one.ids, target)), None)
        seen.is_so = lookup is not None
        if lookup is not None:
            with unobserved():
                labels = ops.reshape(ops.detach(target), tuple(lookup.ids.shape))
                token = _hidden_token(lookup.ids, labels, ignored)
            seen.is_so = token is not None
            seen.num_calls += 1
            seen.looked_up, seen.token = lookup.frame, token or 0
            by = self._flow.read(target).call
            seen.made = None if by == OUTSIDE else self._flow.calls[by].frame

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[HiddenIgnored]:
        """Yield the losses where it was so in every call."""
        for number, seen in self._seen.items():
            if seen.is_so and seen.num_calls >= LEAST_CALLS:
                yield HiddenIgnored(
                    num_calls=seen.num_calls,
                    token=seen.token,
                    looked_up=frame_of(seen.looked_up),
                    used=frame_of(number),
                )


def _fits(ids: torch.Tensor, target: Any) -> bool:
    is_plain = type(target) is torch.Tensor and target.is_cpu and not ops.is_floating_point(target)
    return is_plain and ops.numel(target) == ops.numel(ids) and is_small_and_readable(target, MOST_ELEMENTS)


def _hidden_token(ids: torch.Tensor, labels: torch.Tensor, ignored: int) -> int | None:
    """Return the one token at all places that are ignored, if it stands at no other and these have their own label."""
    is_ignored = ops.eq(labels, ignored)
    is_counted = ops.logical_not(is_ignored)
    before, after = _starts(is_counted), ops.flip(_starts(ops.flip(is_counted, (1,))), (1,))
    between = ops.logical_and(is_ignored, ops.logical_and(before, after))
    tokens = ops.getitem(ids, is_ignored)
    if not ops.item(ops.any(between)) or not ops.item(ops.all(ops.eq(tokens, ops.getitem(tokens, 0)))):
        return None
    token = int(ops.item(ops.getitem(tokens, 0)))
    own = ops.getitem(ids, is_counted)
    is_same = ops.all(ops.eq(own, ops.getitem(labels, is_counted)))
    return token if ops.item(is_same) and not ops.item(ops.any(ops.eq(own, token))) else None


def _starts(is_counted: torch.Tensor) -> torch.Tensor:
    """Mark the places of each row from the first one on that is counted."""
    return ops.gt(ops.cumsum(ops.to(is_counted, torch.int64), 1), 0)
