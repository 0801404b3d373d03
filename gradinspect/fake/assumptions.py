"""What is assumed of values that fake tensors do not have: that they are finite, and that counts are the largest.

NOTE [Values that are assumed]
`if torch.isnan(loss).any()` and `correct += (predicted == labels).sum().item()` need values that `fit` can assume:
training goes well, so every number is finite; and how many elements are true is bounded by how many there are, which is
also what a size that is made of it may be at most. So a few operators are followed from such tensors to what is read.
Everything else that is read is answered as NOTE [Losses that are printed] says.
"""

from collections.abc import Callable
from math import isfinite
from typing import Any, NamedTuple

import torch

from gradinspect.torch_api.operators import converting, is_mutable
from gradinspect.torch_api.weak import HiddenRef

_ATEN = torch.ops.aten
_TESTS = frozenset((_ATEN.isnan.default, _ATEN.isinf.default, _ATEN.isposinf.default, _ATEN.isneginf.default))
_SUMS = frozenset((
    _ATEN.sum.default, _ATEN.sum.dim_IntList, _ATEN.count_nonzero.default, _ATEN.count_nonzero.dim_IntList,
))  # fmt: skip
_KEEPS = frozenset((
    _ATEN.any.default, _ATEN.any.dim, _ATEN.any.dims, _ATEN.all.default, _ATEN.all.dim, _ATEN.all.dims,
    _ATEN.max.default, _ATEN.amax.default, _ATEN.detach.default, _ATEN.alias.default, _ATEN.clone.default,
    _ATEN.select.int, _ATEN.view.default, converting,
))  # fmt: skip
_NEGATES = frozenset((_ATEN.logical_not.default, _ATEN.bitwise_not.default))
_JOINS: dict[Any, Callable[[int, int], int]] = {
    _ATEN.logical_or.default: max, _ATEN.bitwise_or.Tensor: max, _ATEN.logical_and.default: min,
    _ATEN.bitwise_and.Tensor: min, _ATEN.mul.Tensor: min,
}  # fmt: skip
_EQUALS, _DIFFERS, _DIFFERS_FROM = _ATEN.eq.Tensor, _ATEN.ne.Tensor, _ATEN.ne.Scalar
_FOLLOWED = _TESTS | _SUMS | _KEEPS | _NEGATES | _JOINS.keys() | {_EQUALS, _DIFFERS, _DIFFERS_FROM}


class Assumed(NamedTuple):
    """The number that every element of a tensor is assumed to be."""

    number: int
    is_largest: bool = False  # a bound, not a value


class Assumptions:
    """Follows what is assumed of tensors."""

    def __init__(self) -> None:
        """Assume nothing yet."""
        self._known: dict[int, tuple[HiddenRef, Assumed]] = {}  # by the id of the tensor

    def of(self, tensor: torch.Tensor) -> Assumed | None:
        """Return what is assumed of a whole number or a truth value; of other numbers nothing is."""
        known = self._known.get(id(tensor))
        return None if known is None or tensor.dtype.is_floating_point else known[1]

    def follow(self, func: Any, args: tuple[Any, ...], result: Any) -> None:
        """Note what is known of a result, from the operator's arguments."""
        if self._known and is_mutable(func) and not _is_of_numbers(args):
            self._known.clear()  # of what it writes to, a view may be known
        if func not in _FOLLOWED or not isinstance(result, torch.Tensor):
            return
        assumed = self._of_result(func, args)
        if assumed is not None:
            self._learn(result, assumed)

    def _learn(self, tensor: torch.Tensor, assumed: Assumed) -> None:
        key, known = id(tensor), self._known

        def ended(reference: HiddenRef) -> None:
            if known.get(key, (None,))[0] is reference:
                del known[key]

        is_truth = tensor.dtype is torch.bool
        known[key] = (
            HiddenRef(tensor, ended),
            assumed._replace(number=min(assumed.number, 1)) if is_truth else assumed,
        )

    def _of_result(self, func: Any, args: tuple[Any, ...]) -> Assumed | None:
        if func in _TESTS:
            return Assumed(0)
        if func in _SUMS:
            return self._sum(args)
        if func in _KEEPS:
            return self.of(args[0])
        if func in _NEGATES:
            known = self._truth(args[0])
            return None if known is None or known.is_largest else Assumed(1 - known.number)
        if func in _JOINS:
            one, other = map(self._truth, args[:2])
            return None if one is None or other is None else Assumed(_JOINS[func](one.number, other.number))
        return _of_comparison(func, args)

    def _truth(self, tensor: Any) -> Assumed | None:
        is_truth = isinstance(tensor, torch.Tensor) and tensor.dtype is torch.bool
        return self.of(tensor) if is_truth else None

    def _sum(self, args: tuple[Any, ...]) -> Assumed | None:
        """Count what is true: a bound, unless it is assumed which are."""
        if args[0].dtype is not torch.bool:
            return None
        known = self._truth(args[0])
        number = _num_summed(args[0], args[1] if len(args) > 1 else None)
        return Assumed(number, is_largest=True) if known is None else Assumed(number * known.number)


def _of_comparison(func: Any, args: tuple[Any, ...]) -> Assumed | None:
    """Answer the comparisons that `torch.isfinite` and `x != x` are made of."""
    if func in (_EQUALS, _DIFFERS) and args[0] is args[1]:
        return Assumed(int(func is _EQUALS))
    if func is _DIFFERS_FROM and isinstance(args[1], float) and not isfinite(args[1]):
        return Assumed(1)
    return None


def _is_of_numbers(args: tuple[Any, ...]) -> bool:
    """Return whether an operator's first argument holds no truth values and no counts."""
    return bool(args) and isinstance(args[0], torch.Tensor) and args[0].dtype.is_floating_point


def _num_summed(tensor: torch.Tensor, dims: list[int] | None) -> int:
    number = 1
    for dim in dims or range(tensor.dim()):
        number *= int(tensor.shape[dim])
    return number
