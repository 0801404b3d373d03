"""Statistics of many gradients: computed at once for large ones, in groups for small ones.

Takes one gradient at a time, as backward passes it on. Returns at the end its norm, its largest element, its mean, and
how many elements are zero or not finite.

NOTE [Groups of small gradients]
On a small tensor the cost of an operator is its overhead, and six per gradient cost more than backward itself. So small
gradients are copied, which takes one operator, and measured together, all those of one shape and dtype as the rows of
one matrix. Nothing else of the program is copied, and at most `MAX_WAITING` copies are held.
"""

import math
import threading
from collections.abc import Sequence
from itertools import count
from typing import Any

import torch
from msgspec import Struct

from gradinspect.graph import GradientStats
from gradinspect.observers.gradients.norms import plain_values
from gradinspect.torch_api.modes import computes_by_itself, unobserved
from gradinspect.torch_api.tensors import tells_values

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
    most: int  # so many of them are measured together, if they are ordinary; 0 of large ones, which are measured alone
    waiting: list["Figures"] = []  # those that are to be measured together


class Figures(Struct, gc=False):
    """The statistics of one gradient, once known. Not tracked by the garbage collector, since there are very many."""

    kind: Kind
    copy: torch.Tensor | None = None  # of a small one, until it is measured
    stats: GradientStats | None = None  # None until fetched


class Measurements:
    """Measures gradients, on any thread. Their statistics are known after `fetch`."""

    def __init__(self) -> None:
        """Start empty."""
        self._lock = threading.Lock()  # each device has a thread of its own
        self._kinds: dict[tuple[Any, ...], Kind] = {}
        self._number = count(1)
        self._large: list[tuple[Figures, torch.Tensor, torch.Tensor]] = []  # still on their devices

    def measure(self, gradients: Sequence[Any]) -> tuple[Figures | None, ...]:
        """Measure some gradients; None for a missing one, or one that cannot be measured.

        Small ones are copied, in the loop itself: a call for each would cost more. NOTE [Groups of small gradients].
        """
        if not tells_values():
            return (None,) * len(gradients)
        found: list[Figures | None] = []
        full = None
        with unobserved():
            for gradient in gradients:
                figures = None
                if type(gradient) is torch.Tensor:
                    try:
                        kind = self._kinds.get((gradient.dtype, gradient.shape)) or self._new_kind(gradient)
                        if kind.most and gradient.is_cpu and gradient.layout is _STRIDED:
                            figures = Figures(kind, gradient.clone())
                            kind.waiting.append(figures)
                            full = kind if len(kind.waiting) >= kind.most else full
                        else:
                            figures = self._measure(kind, gradient)
                    except (RuntimeError, NotImplementedError, TypeError):
                        pass
                elif gradient is not None:
                    figures = self._measure_strange(gradient)
                found.append(figures)
            if full is not None or not next(self._number) % MAX_WAITING:
                self._measure_groups()
        return tuple(found)

    def fetch(self) -> None:
        """Copy all statistics to the CPU, with one transfer per device and dtype."""
        with unobserved():
            self._measure_groups()
            groups: dict[tuple[Any, ...], list[tuple[Figures, torch.Tensor, torch.Tensor]]] = {}
            for item in self._large:
                groups.setdefault((item[1].device, item[1].dtype), []).append(item)
            self._large = []
            for items in groups.values():
                floats = torch.stack([item[1] for item in items])
                _settle([item[0] for item in items], floats, torch.stack([item[2] for item in items]))

    def _measure_strange(self, gradient: torch.Tensor) -> Figures | None:
        """Measure a gradient of a subclass, unless its class implements the operators."""
        try:
            if not computes_by_itself(gradient):
                return self._measure(self._new_kind(gradient), gradient)
        except (RuntimeError, NotImplementedError, TypeError):
            pass
        return None

    def _measure(self, kind: Kind, gradient: torch.Tensor) -> Figures | None:
        """Measure one gradient by itself."""
        if not kind.num_elements:
            return None
        figures = Figures(kind)
        values = plain_values(gradient)
        if values.is_cpu:
            figures.stats = _stats_of(kind, *_measured_here(values))
        else:
            self._large.append((figures, *_measured(values)))
        return figures

    def _new_kind(self, gradient: torch.Tensor) -> Kind:
        dtype = str(gradient.dtype).removeprefix("torch.")
        number = gradient.numel()
        most = min(MAX_WAITING, MAX_TOGETHER // number) if 0 < number <= SMALL and dtype in _FLOATS else 0
        kind = Kind(tuple(gradient.shape), dtype, number, most)
        return self._kinds.setdefault((gradient.dtype, gradient.shape), kind)

    def _measure_groups(self) -> None:
        """Measure the small gradients. NOTE [Groups of small gradients]."""
        with self._lock:
            for kind in list(self._kinds.values()):
                group = kind.waiting[:]  # another thread may add to it meanwhile
                if group:
                    del kind.waiting[: len(group)]
                    try:
                        _measure_group(group)
                    except (RuntimeError, NotImplementedError):
                        _measure_group([figures for figures in group if _has_values(figures.copy)])


def _measure_group(group: Sequence[Figures]) -> None:
    """Measure the copies of gradients of one kind; the order of their elements does not matter."""
    if group:
        copies = [figures.copy for figures in group if figures.copy is not None]
        _settle(group, *_measured_rows(torch.stack(copies).reshape(len(group), -1)))


def _has_values(tensor: torch.Tensor | None) -> bool:
    """Return whether a tensor can be read; those of grad(is_grads_batched=True) cannot."""
    try:
        return tensor is not None and tensor.untyped_storage() is not None
    except (RuntimeError, NotImplementedError):
        return False


def _settle(every: Sequence[Figures], floats: torch.Tensor, counts: torch.Tensor) -> None:
    """Store statistics: rows of norm, minimum, maximum and sum, and of the counts of nonzero and nonfinite elements."""
    for figures, (norm, low, high, total), (num_nonzero, num_nonfinite) in zip(
        every, floats.tolist(), counts.tolist(), strict=True
    ):
        figures.copy = None
        figures.stats = _stats_of(figures.kind, norm, low, high, total, num_nonzero, num_nonfinite)


def _stats_of(  # noqa: PLR0913, PLR0917  # what is computed of each gradient
    kind: Kind, norm: float, low: float, high: float, total: float, num_nonzero: int, num_nonfinite: int
) -> GradientStats:
    """Make the record; by position, which is twice as fast, because there is one for each gradient."""
    number = kind.num_elements
    largest = max(abs(low), abs(high))
    return GradientStats(
        kind.shape, kind.dtype, norm, largest, total / number, number - num_nonzero, num_nonfinite, number
    )


def _measured_here(values: torch.Tensor) -> tuple[float, float, float, float, int, int]:
    """Measure a tensor on the CPU, where nothing has to be transferred."""
    norm = torch.linalg.vector_norm(values).item()
    low, high = torch.aminmax(values)
    num_nonfinite = 0 if math.isfinite(norm) else int(torch.isfinite(values).logical_not_().sum())
    num_nonzero = int(torch.count_nonzero(values))
    return norm, low.item(), high.item(), values.sum().item(), num_nonzero, num_nonfinite


def _measured(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the four floats and two counts of a tensor, still on its device."""
    low, high = torch.aminmax(values)
    num_nonfinite = torch.isfinite(values).logical_not_().sum()
    counts = torch.stack([torch.count_nonzero(values), num_nonfinite])
    return torch.stack([torch.linalg.vector_norm(values), low, high, values.sum()]), counts


def _measured_rows(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Do the same for each row of a matrix."""
    low, high = torch.aminmax(rows, dim=1)
    norms, num_nonzero = torch.linalg.vector_norm(rows, dim=1), torch.count_nonzero(rows, 1)
    if torch.isfinite(norms).all():
        num_nonfinite = torch.zeros_like(num_nonzero)
    else:
        num_nonfinite = torch.isfinite(rows).logical_not_().sum(1)
    return torch.stack([norms, low, high, rows.sum(1)], 1), torch.stack([num_nonzero, num_nonfinite], 1)
