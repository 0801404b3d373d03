"""Inputs that were put into another order, while their targets stayed in the first one.

NOTE [One side only]
`x[order]` with a permutation or with the order of lengths, compared with `y` as it was. Mixtures of examples are
permuted too, and so are negatives: so what was reordered must go to the loss without meeting anything that was not,
apart from parameters. And the targets must be older than the order, as many, and neither positions nor constants. What
was sorted is often put back at the end: a second sort of the first one, or a scatter by it, says so.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from msgspec import Struct

from gradinspect.checks.evidence.arguments.given import argument
from gradinspect.checks.evidence.objectives.regressions import LOSSES_OF_TARGETS
from gradinspect.checks.evidence.targets.orders import EACH_ALONE
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.targets import OneOrder
from gradinspect.checks.facts.value_flow import NO_LEAF, OUTSIDE, ancestors
from gradinspect.graph import Frame
from gradinspect.torch_api.patching.originals import ops

LEAST_CALLS = 3  # of a line
MOST_CALLS = 6
MOST_ORDERS = 10_000
_SORTS = frozenset(("sort", "argsort"))
_PICKS = frozenset(("getitem", "index_select"))
_RESTORING = _SORTS | frozenset(("scatter", "index_copy", "index_put", "setitem", "gather"))
_OWN_STATE = frozenset(("batch_norm", "layer_norm", "group_norm", "instance_norm"))  # read buffers
_NO_DATA = frozenset(("arange", "eye", "zeros", "ones", "full", "empty", "linspace", "zeros_like", "ones_like",
                      "full_like", "new_zeros", "new_ones", "new_full", "randperm"))  # fmt: skip


class _Seen(Struct):
    """All calls of a loss on a line."""

    num_calls: int = 0
    num_apart: int = 0
    length: int = 0
    order: int = OUTSIDE
    pick: int = OUTSIDE


class OneOrderLog:
    """Looks at orders. NOTE [One side only]."""

    functions = _SORTS | _PICKS | LOSSES_OF_TARGETS | frozenset(("randperm",))

    def __init__(self, flow: Dataflow) -> None:
        """Share the calls that made inputs and targets."""
        self._flow = flow
        self._lengths: dict[int, int] = {}  # of the orders, by their calls
        self._picks: set[int] = set()  # calls that take rows by an index
        self._seen: dict[int | None, _Seen] = {}

    def note(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call that has returned, given the frame that it is on."""
        if function in LOSSES_OF_TARGETS:
            if self._lengths and self._picks:
                self._compare(args, kwargs, number)
        elif function in _PICKS:
            if self._lengths and _takes_rows(function, args):
                self._picks.add(len(self._flow.calls))
        elif args and number is not None and len(self._lengths) < MOST_ORDERS:
            length = _length(args[0])
            if length > 1:
                self._lengths[len(self._flow.calls)] = length

    def _compare(self, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        scores: Any = argument(args, kwargs, 0, "input")
        target: Any = argument(args, kwargs, 1, "target")
        if type(scores) is not torch.Tensor or type(target) is not torch.Tensor or not ops.dim(target):
            return
        seen = self._seen.setdefault(number, _Seen())
        if seen.num_calls >= MOST_CALLS or seen.num_apart != seen.num_calls or not scores.requires_grad:
            return
        seen.num_calls += 1
        behind = ancestors(self._flow.calls, self._flow.read(scores).call, stops_at_leaves=True)
        orders = behind & self._lengths.keys()
        source = self._source(target)
        if len(orders) != 1 or source is None or source >= min(orders):
            return
        (order,) = orders
        pick = self._pick(order, behind)
        if pick is not None and self._lengths[order] in (ops.size(target, 0), self._length_of(target)):
            seen.num_apart, seen.order, seen.pick, seen.length = seen.num_apart + 1, order, pick, self._lengths[order]

    def _pick(self, order: int, behind: set[int]) -> int | None:
        """Return the call that takes rows in an order, if nothing else comes to the scores beside them."""
        calls, moved, picks = self._flow.calls, {order}, list[int]()
        for one in sorted(behind):
            reads = calls[one].reads
            if one == order or moved.isdisjoint(read.call for read in reads):
                continue
            name = calls[one].name.strip("_")
            is_pick = one in self._picks and reads[-1].call in moved and reads[0].call not in moved
            if name in _RESTORING:
                return None
            beside = [read for read in reads if read.call not in moved and read.leaf == NO_LEAF]
            if not is_pick and picks and name not in _OWN_STATE and any(not self._is_fresh(one.call) for one in beside):
                return None
            picks += [one] if is_pick else []
            moved.add(one)
        return picks[0] if picks else None

    def _is_fresh(self, call: int) -> bool:
        """Return whether a value was made of nothing, as a first hidden state is."""
        return call != OUTSIDE and not self._flow.calls[call].reads

    def _source(self, target: torch.Tensor) -> int | None:
        """Return the call that made the values of a target; None if they are no data."""
        calls, made = self._flow.calls, self._flow.read(target).call
        while made != OUTSIDE and calls[made].name.strip("_") in EACH_ALONE and calls[made].reads:
            if any(read.call in self._lengths for read in calls[made].reads[1:]):
                return None
            made = calls[made].reads[0].call
        behind = ancestors(calls, made)
        if behind & self._lengths.keys():
            return None
        return None if made != OUTSIDE and calls[made].name.strip("_") in _NO_DATA else made

    def _length_of(self, target: torch.Tensor) -> int:
        """Return the length of what a target is a part of."""
        whole = ops.numel(target) and ops.untyped_storage(target).nbytes() // ops.element_size(target)
        row = ops.numel(target) // max(ops.size(target, 0), 1)
        return int(whole // row) if row else 0

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[OneOrder]:
        """Yield the lines where it was so in every call."""
        calls = self._flow.calls
        for number, seen in self._seen.items():
            if seen.num_apart == seen.num_calls >= LEAST_CALLS:
                yield OneOrder(
                    length=seen.length, num_calls=seen.num_calls, is_sorted=calls[seen.order].name.strip("_") in _SORTS,
                    made=frame_of(calls[seen.order].frame), taken=frame_of(calls[seen.pick].frame),
                    used=frame_of(number),
                )  # fmt: skip


def _length(given: Any) -> int:
    """Return how long an order is: of a number, or of what is sorted, if it has one axis."""
    if type(given) is int:
        return given
    if type(given) is torch.Tensor and ops.dim(given) == 1 and not given.requires_grad:
        return int(ops.size(given, 0))
    return 0


def _takes_rows(function: str, args: Sequence[Any]) -> bool:
    if function == "index_select":
        return len(args) > 2 and args[1] == 0
    return len(args) > 1 and type(args[1]) is torch.Tensor and bool(ops.dim(args[1]) == 1)
