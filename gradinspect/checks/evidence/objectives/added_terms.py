"""What is added up in a loss: a sum beside a mean, and a term that was computed and added twice.

NOTE [Unlike reductions]
A mean over a batch is as large for 16 examples as for 160, a sum is ten times as large. Of a loss that adds both up,
the batch size says which one counts. Both have to come from the same values, with as many rows, so that a penalty of
weights is none of them. A sum that was divided by the number of rows is a mean; one with a weight of a tenth or less
has been balanced by hand, and one of an average over the rows does not grow with them.

NOTE [Computed twice]
`loss + criterion(out, y)` of a loss that has this term already is another tensor with the same value. It counts as the
same only if the same functions have read the same tensors, and if both values are equal in each call that is looked at:
the two labels of a mixture, which no function has made, are told apart by that. What one line computes twice is the
round of a loop.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, Literal, NamedTuple

import torch
from msgspec import Struct

from gradinspect.checks.evidence.arguments.given import argument, reduction_of
from gradinspect.checks.evidence.objectives.outweighed_codes import (
    HALF,
    LEAST_ELEMENTS,
    MOST_NATS,
    is_divergence_of_code,
)
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.evidence.values.result_states import is_small_and_readable
from gradinspect.checks.facts.objectives import OutweighedCode, RepeatedTerm, UnlikeReductions
from gradinspect.checks.facts.value_flow import OUTSIDE, Call, Read, all_behind
from gradinspect.graph import Frame
from gradinspect.recording.transparency.own_errors import OwnErrors
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.classes import number_of
from gradinspect.torch_api.patching.originals import ops

LEAST_CALLS = 2  # of a line
MOST_CALLS = 6
LEAST_ROWS = 4
LEAST_WEIGHT = 0.1  # of a sum, beside that of a mean
MOST_TERMS = 200  # of one side of a sum, and calls between them
_MOST_PAIRS = 500  # of calls that are compared
_ADDS = frozenset(("add", "radd", "iadd"))
_SUBTRACTS = frozenset(("sub", "rsub", "isub"))
_PRODUCTS = frozenset(("mul", "multiply", "rmul", "imul"))
_QUOTIENTS = frozenset(("div", "true_divide", "truediv"))
_PASSES = frozenset(("neg", "float", "to", "squeeze"))
_LOSSES = frozenset((
    "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "cross_entropy", "nll_loss", "kl_div",
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "gaussian_nll_loss", "poisson_nll_loss",
))  # fmt: skip
_REDUCTION: Mapping[str, Literal["sum", "mean"]] = {"sum": "sum", "mean": "mean", "batchmean": "mean"}


class _Reduced(NamedTuple):
    """A call that made one number of all rows."""

    kind: Literal["sum", "mean"]
    rows: int
    elements: int


class _Term(NamedTuple):
    """A term of a sum, and what it is multiplied with there."""

    call: int
    weight: float


class _Pair(Struct):
    """What the calls of a line have added up."""

    num_calls: int = 0
    num_unlike: int = 0
    num_twice: int = 0
    unlike: tuple[int, int] | None = None  # the calls of a sum and of a mean
    rows: int = 0
    twice: tuple[int, int] | None = None
    num_outweighed: int = 0
    outweighed: tuple[int, int] | None = None  # the calls of a divergence and of an error
    elements: int = 0  # of an example, over which the error is averaged
    nats: float = 0.0  # that the divergence of an example can have at most


class AddedTermLog:
    """Looks at sums of two numbers. NOTE [Unlike reductions], NOTE [Computed twice]."""

    functions = _LOSSES | frozenset(("sum", "mean"))

    def __init__(self, flow: Dataflow, errors: OwnErrors) -> None:
        """Share the calls that made the terms; what is too long is counted."""
        self._flow = flow
        self._errors = errors
        self._reduced: dict[int, _Reduced] = {}  # by the call
        self._over_rows: set[int] = set()  # calls that reduce the first axis, and leave others
        self._weights: dict[int, float] = {}  # by the call of a product with a number
        self._values: dict[int, float] = {}  # of what was added, by the call that made it
        self._seen: dict[int | None, _Pair] = {}

    def note(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any], _number: int | None) -> None:
        """Look at a call that has returned, given the frame that it is on."""
        first: Any = argument(args, kwargs, 0, "input")
        if type(first) is not torch.Tensor or not first.requires_grad or not first.shape:
            return
        call, num_axes = len(self._flow.calls), len(first.shape)
        if function in _LOSSES:
            kind = _REDUCTION.get(reduction_of(function, args, kwargs))
            if kind is not None:
                self._reduced[call] = _Reduced(kind, first.shape[0], ops.numel(first))
            return
        axes = argument(args, kwargs, 1, "dim")
        if axes is None or num_axes == 1:
            self._reduced[call] = _Reduced("sum" if function == "sum" else "mean", first.shape[0], ops.numel(first))
        elif _has_first(axes, num_axes):
            self._over_rows.add(call)

    def weighed(self, function: str, weight: Any) -> None:
        """Note a product with a number."""
        known = number_of(weight)
        if known:
            self._weights[len(self._flow.calls)] = 1 / known if function in _QUOTIENTS else float(known)

    def added(self, function: str, first: torch.Tensor, second: torch.Tensor, number: int | None) -> None:
        """Look at the sum of two numbers that have a graph."""
        seen = self._seen.setdefault(number, _Pair())
        if seen.num_calls >= MOST_CALLS or number is None:
            return
        seen.num_calls += 1
        one, other = self._flow.read(first), self._flow.read(second)
        terms = [[*self._terms(read)] for read in (one, other)]
        self._compare_reductions(seen, terms)
        if function in _ADDS:
            self._compare_values(seen, (one, first), (other, second))
            self._compare_worth(seen, list(zip((one, other), terms, strict=True)))

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[object]:
        """Yield the lines where it was so in every call."""
        calls = self._flow.calls
        for number, seen in self._seen.items():
            if seen.outweighed is not None and seen.num_outweighed == seen.num_calls >= LEAST_CALLS:
                summed, error = (frame_of(calls[call].frame) for call in seen.outweighed)
                yield OutweighedCode(
                    elements=seen.elements, nats=seen.nats, num_calls=seen.num_calls,
                    summed=summed, error=error, used=frame_of(number),
                )  # fmt: skip
            if seen.unlike is not None and seen.num_unlike == seen.num_calls >= LEAST_CALLS:
                summed, mean = (frame_of(calls[call].frame) for call in seen.unlike)
                yield UnlikeReductions(
                    rows=seen.rows, num_calls=seen.num_calls, summed=summed, averaged=mean, used=frame_of(number),
                    layer=frame_of(self._flow.origins.of_call(seen.unlike[0])),
                )  # fmt: skip
            if seen.twice is not None and seen.num_twice == seen.num_calls >= LEAST_CALLS:
                first, again = (frame_of(calls[call].frame) for call in seen.twice)
                yield RepeatedTerm(count=2, first=first, again=again, used=(frame_of(number),))

    def _compare_reductions(self, seen: _Pair, sides: list[list[_Term]]) -> None:
        """Look for a sum on one side, and a mean on the other."""
        for mine, its in (sides, sides[::-1]):
            for summed in mine:
                for mean in its:
                    rows = self._unlike_rows(summed, mean)
                    if rows:
                        seen.unlike, seen.rows = (summed.call, mean.call), rows
                        seen.num_unlike += 1
                        return

    def _terms(self, read: Read) -> Iterator[_Term]:
        """Yield what is added up, as far as it is known what it is multiplied with."""
        calls, todo, count = self._flow.calls, [(read, 1.0)], 0
        while todo:
            one, weight = todo.pop()
            if not one.leads_back or one.call == OUTSIDE:
                continue
            count += 1
            if self._is_too_many(count):
                return
            call = calls[one.call]
            name = call.name.strip("_")
            factor = self._factor(one.call, name)
            if factor is not None:
                todo += [(each, weight * factor) for each in call.reads]
            elif name not in _PRODUCTS | _QUOTIENTS:
                yield _Term(one.call, weight)

    def _is_too_many(self, count: int) -> bool:
        if count > MOST_TERMS:
            self._errors.pass_over("term of a loss", f"after the first {MOST_TERMS} of a sum")
        return count > MOST_TERMS

    def _factor(self, number: int, name: str) -> float | None:
        """Return by what a call multiplies each number that it passes on; None if it does something else."""
        if name in _ADDS | _SUBTRACTS | _PASSES:
            return 1.0
        return self._weights.get(number)

    def _unlike_rows(self, summed: _Term, mean: _Term) -> int:
        """Return how many rows one term sums up, if the other one is a mean of as many of the same batch."""
        one, other = self._reduced.get(summed.call), self._reduced.get(mean.call)
        if one is None or other is None or (one.kind, other.kind) != ("sum", "mean"):
            return 0
        few, many = sorted((one.rows, other.rows))
        own = abs(summed.weight) * self._weight_inside(summed.call)
        weight = own / abs(mean.weight)
        is_balanced = weight < LEAST_WEIGHT or min(own, weight) * one.rows < 2
        if few < LEAST_ROWS or many % few or is_balanced:
            return 0
        calls = self._flow.calls
        its, mine = (all_behind(calls, Read(one.call, is_live=True)) - {one.call} for one in (mean, summed))
        is_same = bool(mine & its) and self._over_rows.isdisjoint(mine - its)
        return one.rows if is_same else 0

    def _compare_worth(self, seen: _Pair, sides: list[tuple[Read, list[_Term]]]) -> None:
        """Look for a divergence on one side, and on the other a mean that can win less. NOTE [What a code can win]."""
        for (read, errors), (_, terms) in (sides, sides[::-1]):
            error = self._values.get(_peeled(self._flow.calls, read)) if len(errors) == 1 else None
            for term in terms if error and isfinite(error) else ():
                elements, weight = self._weight_of_example(term, errors[0])
                if weight and abs(error or 0.0) < MOST_NATS * weight:
                    seen.outweighed, seen.elements = (term.call, errors[0].call), elements
                    seen.nats = max(seen.nats, abs(error or 0.0) / weight)
                    seen.num_outweighed += 1
                    return

    def _weight_of_example(self, term: _Term, error: _Term) -> tuple[int, float]:
        """Return over how many elements of an example an error is averaged, and what the divergence of one counts.

        Zeros if the one is no such mean, or the other no divergence of what the error was decoded from.
        """
        one, mean = self._reduced.get(term.call), self._reduced.get(error.call)
        if one is None or mean is None or mean.kind != "mean" or one.rows < LEAST_ROWS:
            return 0, 0.0
        elements = mean.elements // one.rows
        is_alike = not (mean.elements % one.rows or mean.rows % one.rows) and elements >= LEAST_ELEMENTS
        if not is_alike or not is_divergence_of_code(self._flow.calls, term.call, error.call):
            return 0, 0.0
        share = one.rows if one.kind == "sum" else one.rows / one.elements
        return elements, abs(term.weight) * self._weight_inside(term.call) * share / HALF

    def _weight_inside(self, call: int) -> float:
        """Return what the values of a sum were multiplied with before they were added up."""
        weight, calls = 1.0, self._flow.calls
        read = calls[call].reads[0] if calls[call].reads else Read()
        while read.leads_back and read.call != OUTSIDE:
            made = calls[read.call]
            factor = self._weights.get(read.call, 1.0 if made.name.strip("_") in _PASSES | {"sum"} else None)
            if factor is None:
                break
            weight *= abs(factor)
            read = made.reads[0]
        return weight

    def _compare_values(self, seen: _Pair, one: tuple[Read, torch.Tensor], other: tuple[Read, torch.Tensor]) -> None:
        """Look for a term on one side that is on the other one too."""
        calls = self._flow.calls
        keys = [_peeled(calls, read) for read, _ in (one, other)]
        with unobserved():
            for key, (_, tensor) in zip(keys, (one, other), strict=True):
                if key != OUTSIDE and not ops.is_complex(tensor) and is_small_and_readable(tensor, 1):
                    self._values.setdefault(key, float(ops.item(ops.detach(tensor))))
        sides = [[*self._addends(key)] for key in keys]
        for mine in sides[0]:
            for its in sides[1]:
                if mine != its and self._is_same(mine, its):
                    seen.twice = (min(mine, its), max(mine, its))
                    seen.num_twice += 1
                    return

    def _addends(self, key: int) -> Iterator[int]:
        """Yield the calls of what is added up, if the values are known."""
        calls, todo, count = self._flow.calls, [key], 0
        while todo:
            one, count = todo.pop(), count + 1
            if one == OUTSIDE:
                continue
            if self._is_too_many(count):
                return
            if one in self._values:
                yield one
            if calls[one].name.strip("_") in _ADDS:
                todo += [_peeled(calls, read) for read in calls[one].reads if read.leads_back]

    def _is_same(self, one: int, other: int) -> bool:
        calls, value = self._flow.calls, self._values[one]
        is_equal = value and isfinite(value) and value == self._values[other]
        return bool(is_equal) and calls[one].frame != calls[other].frame and _computes_same(calls, one, other)


def _has_first(axes: Any, num_axes: int) -> bool:
    """Return whether axes, as a reduction is given them, have the first one."""
    given = axes if isinstance(axes, tuple | list) else (axes,)
    return any(number_of(axis) in (0, -num_axes) for axis in given)


def _peeled(calls: Sequence[Call], read: Read) -> int:
    """Return the call that made a number, before one that has added a number without a graph, as sum() adds 0."""
    call = read.call if read.leads_back else OUTSIDE
    while call != OUTSIDE and calls[call].name.strip("_") in _ADDS and len(calls[call].reads) == 1:
        before = calls[call].reads[0]
        call = before.call if before.leads_back else OUTSIDE
    return call


def _computes_same(calls: Sequence[Call], one: int, other: int) -> bool:
    """Return whether two calls are of the same function, on what the same functions have made of the same tensors."""
    todo, seen = [(one, other)], set[tuple[int, int]]()
    while todo:
        pair = todo.pop()
        if pair[0] == pair[1] or pair in seen:
            continue
        seen.add(pair)
        first, second = (calls[number] for number in pair)
        if OUTSIDE in pair or first.op != second.op or len(first.reads) != len(second.reads):
            return False
        if len(seen) > _MOST_PAIRS:
            return False
        for mine, its in zip(first.reads, second.reads, strict=True):
            if mine.leaf != its.leaf:
                return False
            todo.append((mine.call, its.call))
    return True
