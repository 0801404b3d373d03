"""Weights of attention that add up to one along another axis than the one that a product sums over.

NOTE [Queries and keys]
`softmax(q @ k.mT, dim=-2) @ v` shares each key out among the queries, and then sums over the keys: the weights of one
query add up to anything. Clusters and slots are shared out so on purpose, and are not square: so only scores of a
sequence with itself count, which a product has made, and only where nothing moves the axes before the second product.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from msgspec import Struct

from gradinspect.checks.evidence.arguments.given import argument
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.axes import OtherAxis
from gradinspect.checks.facts.value_flow import OUTSIDE
from gradinspect.graph import Frame
from gradinspect.torch_api.patching.classes import number_of

LEAST_CALLS = 2  # of a line
_PRODUCTS = frozenset(("matmul", "bmm", "baddbmm"))
_SCORES = frozenset((  # what scores go through before a softmax
    "masked_fill", "div", "true_divide", "truediv", "mul", "multiply", "add", "sub", "where", "to", "float", "type_as",
    "contiguous", "clone",
))  # fmt: skip
_WEIGHTS = frozenset(("dropout", "to", "float", "type_as", "contiguous", "clone", "half", "bfloat16"))


class _Seen(Struct):
    """All products on a line with weights of one softmax."""

    shape: tuple[int, ...]
    softmax: int | None  # the frame
    num_calls: int = 0


class OtherAxisLog:
    """Looks at softmax, and at products with what it returns. NOTE [Queries and keys]."""

    functions = frozenset(("softmax", *_PRODUCTS))

    def __init__(self, flow: Dataflow) -> None:
        """Share the calls that made the weights."""
        self._flow = flow
        self._shared_out: set[int] = set()  # calls of softmax along the rows of a square
        self._seen: dict[int | None, _Seen] = {}
        self._others: set[int | None] = set()  # lines of products with other weights

    def note(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call that has returned, given the frame that it is on."""
        first: Any = argument(args, kwargs, 0, "input")
        if type(first) is not torch.Tensor or len(first.shape) < 2:
            return
        if function == "softmax":
            if self._is_shared_out(first, argument(args, kwargs, 1, "dim")):
                self._shared_out.add(len(self._flow.calls))
        elif self._shared_out:
            self._multiplied(first, number)

    def _is_shared_out(self, scores: torch.Tensor, dim: Any) -> bool:
        """Return whether a softmax of scores of a sequence with itself is along its rows."""
        shape = scores.shape
        if number_of(dim) not in (-2, len(shape) - 2) or shape[-1] != shape[-2] or shape[-1] < 2:
            return False
        return self._behind(scores, _SCORES, _PRODUCTS.__contains__) != OUTSIDE

    def _multiplied(self, weights: torch.Tensor, number: int | None) -> None:
        calls = self._flow.calls
        softmax = self._behind(weights, _WEIGHTS, "softmax".__eq__)
        if softmax not in self._shared_out:
            self._others.add(number)
            return
        seen = self._seen.setdefault(number, _Seen(tuple(weights.shape), calls[softmax].frame))
        seen.num_calls += 1

    def _behind(self, tensor: torch.Tensor, passing: frozenset[str], is_end: Callable[[str], bool]) -> int:
        """Return the call of a function that a tensor comes from, through some others that keep its axes."""
        calls, number = self._flow.calls, self._flow.read(tensor).call
        while number != OUTSIDE:
            name = calls[number].name.strip("_")
            if is_end(name) or is_end(name.removeprefix("r")):
                return number
            if not {name, name.removeprefix("r"), name.removeprefix("i")} & passing or not calls[number].reads:
                return OUTSIDE
            number = next((read.call for read in calls[number].reads if read.leads_back), OUTSIDE)
        return OUTSIDE

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[OtherAxis]:
        """Yield the lines where it was so in every call."""
        for number, seen in self._seen.items():
            if number not in self._others and seen.num_calls >= LEAST_CALLS:
                yield OtherAxis(
                    shape=seen.shape, num_calls=seen.num_calls, applied=frame_of(seen.softmax), used=frame_of(number)
                )
