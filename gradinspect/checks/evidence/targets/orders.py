"""Inputs and targets that were put into orders which were drawn apart, so that no example has its own target.

NOTE [Drawn apart on purpose]
`x[torch.randperm(n)]` and `y[torch.randperm(n)]` are two orders. A mixture of examples, and negatives of another
example, are permuted too, but they share a draw with what they stand beside, or that is not permuted at all. So two
orders of one length count where all of the one side is in the one and all of the other side in the other.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from msgspec import Struct

from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.targets import TwoOrders
from gradinspect.checks.facts.value_flow import OUTSIDE, ancestors
from gradinspect.graph import Frame

LEAST_CALLS = 3  # of a line
MOST_CALLS = 6


class _Seen(Struct):
    """All calls of a loss on a line."""

    length: int = 0
    num_calls: int = 0
    first: int | None = None
    second: int | None = None
    are_apart: bool = True


class OrderLog:
    """Looks at permutations. NOTE [Drawn apart on purpose]."""

    functions = frozenset((
        "randperm", "cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss",
        "binary_cross_entropy", "binary_cross_entropy_with_logits",
    ))  # fmt: skip

    def __init__(self, flow: Dataflow) -> None:
        """Share the calls that made inputs and targets."""
        self._flow = flow
        self._lengths: dict[int, int] = {}  # of the permutations, by their calls
        self._seen: dict[int | None, _Seen] = {}

    def note(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call that has returned, given the frame that it is on."""
        if function == "randperm":
            length = args[0] if args else kwargs.get("n")
            if type(length) is int and number is not None:
                self._lengths[len(self._flow.calls)] = length
            return
        target = kwargs.get("target", args[1] if len(args) > 1 else None)
        if len(self._lengths) < 2 or type(target) is not torch.Tensor or target.requires_grad:
            return
        seen = self._seen.setdefault(number, _Seen())
        scores = args[0] if args else kwargs.get("input")
        if not seen.are_apart or seen.num_calls >= MOST_CALLS or type(scores) is not torch.Tensor:
            return
        seen.num_calls += 1
        mine, its = (self._orders(one) for one in (scores, target))
        seen.are_apart = len(mine) == len(its) == 1 and mine != its
        if seen.are_apart:
            (first,), (second,) = mine, its
            seen.are_apart = self._lengths[first] == self._lengths[second] > 1
            seen.length = self._lengths[first]
            seen.first, seen.second = self._flow.calls[first].frame, self._flow.calls[second].frame

    def _orders(self, tensor: torch.Tensor) -> set[int]:
        """Return the permutations behind a tensor by which something was indexed."""
        made = self._flow.read(tensor).call
        behind = ancestors(self._flow.calls, made, stops_at_leaves=True) if made != OUTSIDE else set()
        return behind & self._lengths.keys()

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[TwoOrders]:
        """Yield the lines where it was so in every call."""
        for number, seen in self._seen.items():
            if seen.are_apart and seen.num_calls >= LEAST_CALLS:
                yield TwoOrders(
                    length=seen.length, num_calls=seen.num_calls, first=frame_of(seen.first),
                    second=frame_of(seen.second), used=frame_of(number),
                )  # fmt: skip
