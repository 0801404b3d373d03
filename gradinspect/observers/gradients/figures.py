"""Statistics of many gradients: computed at once for large ones, in groups for small ones.

Takes one gradient at a time, as backward passes it on. Returns at the end its norm, its largest element, its mean, and
how many elements are zero or not finite, or why these are not known: NOTE [Unmeasured is not missing] in `graph`.

NOTE [Groups of small gradients]
On a small tensor the cost of an operator is its overhead, and six per gradient cost more than backward itself. So small
gradients are copied, which takes one operator, and measured together, all those of one shape and dtype as the rows of
one matrix. Nothing else of the program is copied, and at most `MAX_WAITING` copies are held.
"""

from collections.abc import Iterable, Sequence
from itertools import count
from threading import Lock
from typing import Any

import torch
from msgspec import Struct

from gradinspect.graph import GradientStats, Measured
from gradinspect.recording.values.magnitudes import (
    NO_ELEMENTS,
    PIECE,
    SAFE,
    UNREADABLE,
    Magnitudes,
    PendingFigures,
    combined,
    fetched,
    magnitudes_of,
    pending_magnitudes,
    why_failed,
    why_unread,
)
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.originals import ops
from gradinspect.torch_api.tensors import can_read_values

SMALL = 512  # elements
MAX_WAITING = 4_096  # calls of `measure` after which all copies are measured
MAX_TOGETHER = 16_384  # elements of a group; for more, torch starts threads, which cost more than they save
_STRIDED = torch.strided
_FLOATS = frozenset(("float32", "float64"))


class Kind(Struct, gc=False):
    """What the gradients of one shape and dtype have in common."""

    shape: tuple[int, ...]
    dtype: str
    num_elements: int
    most: int  # how many of them are measured together, if they are ordinary; 0: they are large, and measured alone
    waiting: list["Figures"] = []  # those that are to be measured together


class Figures(Struct, gc=False):
    """The statistics of one gradient, once known. Not tracked by the garbage collector, since there are very many."""

    kind: Kind | None
    copy: torch.Tensor | None = None  # of a small one, until it is measured
    stats: Measured = None  # None until fetched


class Measurements:
    """Measures gradients, on any thread. Their statistics are known after `fetch`."""

    def __init__(self, piece: int = PIECE) -> None:
        """Start empty.

        Args:
            piece: How many elements of a device's tensor are measured at a time.
        """
        self.piece = piece
        self._lock = Lock()  # each device has a thread of its own
        self._kinds: dict[tuple[Any, ...], Kind] = {}
        self._number = count(1)
        self._large: list[tuple[Figures, PendingFigures]] = []  # still on their devices

    def measure(self, gradients: Sequence[Any]) -> tuple[Figures | None, ...]:
        """Measure some gradients; None for a missing one.

        Small ones are copied, in the loop itself: a call for each would cost more. NOTE [Groups of small gradients].
        """
        if not can_read_values():
            return tuple([None if one is None else Figures(None, None, why_unread(one)) for one in gradients])
        found: list[Figures | None] = []
        full: tuple[Kind, ...] = ()
        with unobserved():
            for gradient in gradients:
                figures = None
                if type(gradient) is torch.Tensor:
                    try:
                        kind = self._kinds.get((gradient.dtype, gradient.shape)) or self._new_kind(gradient)
                        if kind.most and gradient.is_cpu and gradient.layout is _STRIDED:
                            figures = Figures(kind, ops.clone(gradient))
                            kind.waiting.append(figures)
                            full = (kind,) if len(kind.waiting) >= kind.most else full
                        else:
                            figures = self._measure(kind, gradient)
                    except UNREADABLE as error:
                        figures = Figures(None, None, why_failed(error, gradient))
                elif gradient is not None:
                    figures = self._measure_strange(gradient)
                found.append(figures)
            is_time = not next(self._number) % MAX_WAITING
            if is_time or full:
                self._measure_groups(list(self._kinds.values()) if is_time else full)
        return tuple(found)

    def fetch(self, others: Sequence[PendingFigures] = ()) -> list[list[list[float]]]:
        """Copy all statistics to the CPU, with one transfer per device.

        Args:
            others: Figures that are fetched with them.

        Returns:
            The rows of the others; nothing if the device has failed.
        """
        with unobserved():
            self._measure_groups(list(self._kinds.values()))
            large, self._large = self._large, []
            try:
                rows = fetched([*(pending for _, pending in large), *others])
            except UNREADABLE as error:  # the device has failed
                reason = why_failed(error, None)
                for figures, _ in large:
                    figures.stats = reason
                return []
        for (figures, pending), several in zip(large, rows, strict=False):
            figures.stats = _stats_of(figures.kind, combined(pending, several))
        return rows[len(large) :]

    def _measure_strange(self, gradient: torch.Tensor) -> Figures:
        """Measure a gradient of a subclass, unless its class implements the operators."""
        try:
            reason = why_unread(gradient)
            if reason is None:
                return self._measure(self._new_kind(gradient), gradient)
        except UNREADABLE as error:
            reason = why_failed(error, gradient)
        return Figures(None, None, reason)

    def _measure(self, kind: Kind, gradient: torch.Tensor) -> Figures:
        """Measure one gradient by itself."""
        figures = Figures(kind)
        if gradient.is_meta:
            figures.stats = why_unread(gradient)
        elif not kind.num_elements:
            figures.stats = _stats_of(kind, NO_ELEMENTS)
        elif gradient.is_cpu:
            figures.stats = _stats_of(kind, magnitudes_of(gradient))
        else:
            self._large.append((figures, pending_magnitudes(gradient, self.piece)))
        return figures

    def _new_kind(self, gradient: torch.Tensor) -> Kind:
        dtype = str(gradient.dtype).removeprefix("torch.")
        number = ops.numel(gradient)
        most = min(MAX_WAITING, MAX_TOGETHER // number) if 0 < number <= SMALL and dtype in _FLOATS else 0
        kind = Kind(tuple(gradient.shape), dtype, number, most)
        return self._kinds.setdefault((gradient.dtype, gradient.shape), kind)

    def _measure_groups(self, kinds: Sequence[Kind]) -> None:
        """Measure the small gradients of some kinds. NOTE [Groups of small gradients]."""
        with self._lock:
            for kind in kinds:
                group = kind.waiting[:]  # another thread may add to it meanwhile
                if group:
                    del kind.waiting[: len(group)]
                    try:
                        _measure_group(group)
                    except (RuntimeError, NotImplementedError):
                        _measure_group(list(_readable(group)))


def _measure_group(group: Sequence[Figures]) -> None:
    """Measure the copies of gradients of one kind; the order of their elements does not matter."""
    if group:
        copies = [figures.copy for figures in group if figures.copy is not None]
        rows = ops.reshape(ops.stack(copies), (len(group), -1))
        floats, counts = _measured_rows(rows)
        if _is_any_at_the_edge(floats, rows.dtype):
            _settle_at_the_edge(group, rows)
            return
        kind, number = group[0].kind, rows.shape[1]
        if kind is None:
            return
        for figures, (norm, low, high, total), (num_nonzero, num_nonfinite) in zip(
            group, ops.tolist(floats), ops.tolist(counts), strict=True
        ):
            figures.copy = None
            largest = max(abs(low), abs(high))
            figures.stats = GradientStats(  # by position, which is twice as fast
                kind.shape, kind.dtype, norm, largest, total / number, number - num_nonzero, num_nonfinite, number
            )


def _is_any_at_the_edge(floats: torch.Tensor, dtype: torch.dtype) -> bool:
    """Return whether a row is so small or large that its norm is not to be trusted; `is_safe` of many."""
    largest = ops.amax(ops.abs(ops.narrow(floats, 1, 1, 2)), 1)
    least, most = SAFE[dtype]
    is_small = ops.logical_and(ops.lt(largest, least), ops.gt(largest, 0))
    return bool(ops.item(ops.any(ops.logical_or(is_small, ops.gt(largest, most)))))


def _settle_at_the_edge(group: Sequence[Figures], rows: torch.Tensor) -> None:
    """Measure rows that are very small or large; of float32, all squares are float64 numbers."""
    if rows.dtype is torch.float32:
        floats, counts = _measured_rows(ops.double(rows))
        several = [
            Magnitudes(norm, low, high, total / rows.shape[1], *numbers)
            for (norm, low, high, total), numbers in zip(ops.tolist(floats), ops.tolist(counts), strict=True)
        ]
    else:
        several = [magnitudes_of(row) for row in ops.unbind(rows)]
    for figures, found in zip(group, several, strict=True):
        figures.copy = None
        figures.stats = _stats_of(figures.kind, found)


def _readable(group: Iterable[Figures]) -> Iterable[Figures]:
    """Leave out those that cannot be read, as those of grad(is_grads_batched=True) cannot."""
    for figures in group:
        try:
            if figures.copy is not None:
                ops.untyped_storage(figures.copy)
                yield figures
        except (RuntimeError, NotImplementedError):
            figures.stats, figures.copy = "a batched gradient cannot be read", None


def _stats_of(kind: Kind | None, found: Magnitudes) -> Measured:
    """Make the record; by position, which is twice as fast, because there is one for each gradient."""
    if kind is None:
        return None
    number = kind.num_elements
    return GradientStats(kind.shape, kind.dtype, found[0], found.largest, found[3], number - found[4], found[5], number)


def _measured_rows(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return norm, minimum, maximum and sum of each row of a matrix; and the counts of nonzero and nonfinite ones."""
    low, high = ops.aminmax(rows, dim=1)
    norms, num_nonzero = ops.vector_norm(rows, dim=1), ops.count_nonzero(rows, 1)
    if ops.item(ops.all(ops.isfinite(norms))):
        num_nonfinite = ops.zeros_like(num_nonzero)
    else:
        num_nonfinite = ops.sum(ops.logical_not_(ops.isfinite(rows)), 1)
    return ops.stack([norms, low, high, ops.sum(rows, 1)], 1), ops.stack([num_nonzero, num_nonfinite], 1)
