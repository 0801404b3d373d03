"""Which results of a program's first calls are not finite, so that a loss that is not can be led back to the first.

NOTE [Results that are gone]
A node saves only what its own derivative needs, and when backward begins most of the other values are gone. So results
are looked at when they are made: on the CPU, where nothing has to be waited for, up to a number of calls and elements.
Calls that make a graph are counted apart from others, as data may be made by many.
"""

import sys
from collections.abc import Callable, Sequence
from math import isfinite, isnan
from typing import Any

import torch

from gradinspect.checks.facts.graphs import FirstNonfinite
from gradinspect.checks.facts.value_flow import Call, Read, ancestors, short_name
from gradinspect.graph import Frame
from gradinspect.recording.transparency.own_errors import OwnErrors
from gradinspect.recording.values.magnitudes import why_unread
from gradinspect.torch_api.modes import nothing_looks, unobserved
from gradinspect.torch_api.patching.originals import ops

MOST_LOOKED = 2_000  # results with a graph, and as many without
MOST_ELEMENTS = 262_144  # of one
_ON_PURPOSE = frozenset((
    "masked_fill", "full", "full_like", "new_full", "fill", "where", "tensor", "as_tensor", "setitem", "triu", "tril",
    "float_power", "to", "expand", "repeat", "view", "reshape", "unsqueeze", "getitem", "clone", "detach", "contiguous",
))  # fmt: skip
_UNINITIALIZED = frozenset(("empty", "empty_like", "new_empty", "empty_strided"))
_PRODUCTS = frozenset(("mul", "multiply", "rmul", "imul"))


def is_small_and_readable(tensor: torch.Tensor, most_elements: int) -> bool:
    """Return whether reading the values of a tensor changes nothing and takes little time; it may wait for a device."""
    if torch.jit.is_tracing() or tensor.layout is not torch.strided or tensor.is_nested:
        return False
    if _has_no_reductions(tensor.dtype) or why_unread(tensor) is not None:
        return False
    return 0 < int(ops.numel(tensor)) <= most_elements


def _has_no_reductions(dtype: torch.dtype) -> bool:
    """Return whether torch has little but casts for a dtype, as for floats of 8 bits."""
    return bool(dtype.is_floating_point) and dtype.itemsize == 1


class SizeLimit:
    """Says which tensors are small enough to be read, and counts the others, once for each line."""

    def __init__(self, errors: OwnErrors, what: str, most_elements: int) -> None:
        """Count `what`, as one of it is called, where it has more elements."""
        self._errors = errors
        self._what = what
        self._most = most_elements
        self._lines: set[int | None] = set()

    def allows(self, tensor: torch.Tensor, line: int | None) -> bool:
        """Return whether to read a tensor, given the frame that uses it."""
        if is_small_and_readable(tensor, self._most):
            return True
        if line not in self._lines and is_small_and_readable(tensor, sys.maxsize):
            self._lines.add(line)
            self._errors.pass_over(self._what, f"larger than {self._most:,} elements")
        return False


class ResultStates:
    """Looks at results, and remembers the calls whose result is not finite."""

    def __init__(self) -> None:
        """Start empty."""
        self.nans: set[int] = set()
        self.infinite: set[int] = set()
        self.masked: set[int] = set()  # products with 0
        self.unread: set[int] = set()  # too large to be looked at
        self.left = {False: MOST_LOOKED, True: MOST_LOOKED}  # by whether they have a graph

    def looks_at_nothing(self) -> None:
        """Look at no result: no rule that is on asks for one."""
        self.left = {False: 0, True: 0}

    def look(self, call: int, name: str, inputs: Sequence[torch.Tensor], result: Any) -> None:
        """Look at what a call made, or at the first of several. NOTE [Results that are gone].

        The caller has disabled torch functions.
        """
        result = result[0] if type(result) is tuple and result else result
        if type(result) is not torch.Tensor:
            return
        has_graph = result.requires_grad
        if not self.left[has_graph] or not result.is_cpu or not ops.is_floating_point(result):
            return
        self.left[has_graph] -= 1
        if not is_small_and_readable(result, MOST_ELEMENTS):
            if int(ops.numel(result)):  # what is empty has nothing that is not finite
                self.unread.add(call)
            return
        if nothing_looks() and isfinite(ops.item(ops.sum(ops.detach(result)))):  # nearly all: nobody to hide from
            return
        with unobserved():
            self._note(call, name, inputs, result)

    def _note(self, call: int, name: str, inputs: Sequence[torch.Tensor], result: torch.Tensor) -> None:
        """Remember a call if what it made is not finite."""
        total = ops.item(ops.sum(ops.detach(result)))
        if isfinite(total):
            return
        if isnan(total) and ops.item(ops.any(ops.isnan(result))):
            self.nans.add(call)
            if short_name(name).strip("_") in _PRODUCTS and _has_zero(inputs):
                self.masked.add(call)
        elif ops.item(ops.any(ops.isinf(result))):
            self.infinite.add(call)

    def first(
        self, calls: Sequence[Call], root: Read, frame_of: Callable[[int | None], Frame | None]
    ) -> FirstNonfinite | None:
        """Find the first call that made a NaN or what led to it, of those that a loss was computed from.

        Args:
            calls: In the order in which they were made.
            root: The loss.
            frame_of: Returns a line by the number of its frame.
        """
        behind = ancestors(calls, root.call, stops_at_leaves=True)
        nans = {call for call in self.nans & behind if calls[call].name not in _UNINITIALIZED}
        bad = nans or {call for call in self.infinite & behind if calls[call].name.strip("_") not in _ON_PURPOSE}
        if not bad:
            return None
        number, masked = self._behind_nan(calls, min(bad)), min(self.masked & behind, default=None)
        if any(one.call in self.unread for one in calls[number].reads):  # what it got may not have been finite
            return None
        of_line = calls[number].name, calls[number].frame
        alike = sorted({number, *(call for call in behind if (calls[call].name, calls[call].frame) == of_line)})
        return FirstNonfinite(
            op=calls[number].name.strip("_"),
            is_nan=number in nans,
            number=alike.index(number) + 1,
            num_alike=len(alike),
            made=frame_of(calls[number].frame),
            masked=None if masked is None else frame_of(calls[masked].frame),
        )

    def _behind_nan(self, calls: Sequence[Call], number: int) -> int:
        """Go back from a call to the one that made the infinity that it has read."""
        while True:
            read = [one.call for one in calls[number].reads if one.call in self.infinite]
            found = next((one for one in read if calls[one].name.strip("_") not in _ON_PURPOSE), None)
            if found is None:
                return number
            number = found


def _has_zero(inputs: Sequence[torch.Tensor]) -> bool:
    return any(bool(ops.item(ops.any(ops.eq(ops.detach(one), 0)))) for one in inputs)
