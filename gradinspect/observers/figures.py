"""Statistics of many gradients: computed at once for large ones, in groups for small ones.

Takes one gradient at a time, as backward passes it on. Returns at the end its norm, its largest element, its mean, and
how many elements are zero or not finite.

NOTE [Groups of small gradients]
On a small tensor the cost of an operator is its overhead, and six per gradient cost more than backward itself. So small
gradients are copied, which takes one operator, and measured together, all those of one shape and dtype as the rows of
one matrix. Nothing else of the program is copied, and at most `MAX_WAITING` copies are held.
"""

import threading
from collections.abc import Sequence
from typing import Any

import torch
from msgspec import Struct

from gradinspect.graph import GradientStats
from gradinspect.observers.norms import plain_values
from gradinspect.torch_api.modes import Unobserved, computes_by_itself
from gradinspect.torch_api.tensors import tells_values

SMALL = 512  # elements
MAX_WAITING = 4_096  # copies
MAX_TOGETHER = 16_384  # elements of a group; for more, torch starts threads, which cost more than they save
_FLOATS = frozenset((torch.float32, torch.float64))


class Figures(Struct, gc=False):
    """The statistics of one gradient, once known. Not tracked by the garbage collector, since there are very many."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    num_elements: int
    stats: GradientStats | None = None  # None until fetched

    def settle(self, floats: list[float], counts: list[int]) -> None:
        """Store the norm, minimum, maximum and sum, and the counts of nonzero and nonfinite elements."""
        norm, low, high, total = floats
        num_nonzero, num_nonfinite = counts
        self.stats = GradientStats(
            shape=self.shape,
            dtype=str(self.dtype).removeprefix("torch."),
            norm=norm,
            max_abs=max(abs(low), abs(high)),
            mean=total / self.num_elements,
            num_zeros=self.num_elements - num_nonzero,
            num_nonfinite=num_nonfinite,
            num_elements=self.num_elements,
        )


class Measurements:
    """Measures gradients, on any thread. Their statistics are known after `fetch`."""

    def __init__(self) -> None:
        """Start empty."""
        self._lock = threading.Lock()  # each device has a thread of its own
        self._small: dict[tuple[Any, ...], tuple[list[Figures], list[torch.Tensor]]] = {}
        self._num_waiting = 0
        self._large: list[tuple[Figures, torch.Tensor, torch.Tensor]] = []  # still on their devices

    def measure(self, gradients: Sequence[torch.Tensor | None]) -> tuple[Figures | None, ...]:
        """Measure some gradients; None for a missing one, or one that cannot be measured."""
        if not gradients or not tells_values():
            return (None,) * len(gradients)
        with Unobserved():
            return tuple([self._measured(gradient) for gradient in gradients])

    def fetch(self) -> None:
        """Copy all statistics to the CPU, with one transfer per device and dtype."""
        with Unobserved(), self._lock:
            self._measure_groups()
            groups: dict[tuple[Any, ...], list[tuple[Figures, torch.Tensor, torch.Tensor]]] = {}
            for item in self._large:
                groups.setdefault((item[1].device, item[1].dtype), []).append(item)
            self._large = []
            for items in groups.values():
                floats = torch.stack([item[1] for item in items]).tolist()
                counts = torch.stack([item[2] for item in items]).tolist()
                for (figures, *_), row, counted in zip(items, floats, counts, strict=True):
                    figures.settle(row, counted)

    def _measured(self, gradient: torch.Tensor | None) -> Figures | None:
        if gradient is None or computes_by_itself(gradient):
            return None
        try:
            return self._measure(gradient)
        except (RuntimeError, NotImplementedError, TypeError):
            return None

    def _measure(self, gradient: torch.Tensor) -> Figures | None:
        figures = Figures(tuple(gradient.shape), gradient.dtype, gradient.numel())
        if not figures.num_elements:
            return None
        values = gradient.detach() if gradient.requires_grad else gradient
        if values.layout is torch.strided:
            values.untyped_storage()  # NotImplementedError: autograd.grad(is_grads_batched=True) has no values
        is_plain = values.dtype in _FLOATS and values.layout is torch.strided and values.is_cpu
        if is_plain and figures.num_elements <= SMALL:
            copy = values.clone(memory_format=torch.contiguous_format)
            with self._lock:
                waiting = self._small.setdefault((figures.dtype, figures.shape), ([], []))
                waiting[0].append(figures)
                waiting[1].append(copy)
                self._num_waiting += 1
                if len(waiting[1]) * figures.num_elements >= MAX_TOGETHER or self._num_waiting > MAX_WAITING:
                    self._measure_groups()
            return figures
        floats, counts = _measured(plain_values(values))
        with self._lock:
            self._large.append((figures, floats, counts))
        return figures

    def _measure_groups(self) -> None:
        """Measure the small gradients. NOTE [Groups of small gradients]."""
        groups, self._small = self._small, {}
        self._num_waiting = 0
        for every, copies in groups.values():
            floats, counts = _measured_rows(torch.stack(copies).view(len(copies), -1))
            for figures, row, counted in zip(every, floats.tolist(), counts.tolist(), strict=True):
                figures.settle(row, counted)


def _measured(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the four floats and two counts of a tensor, still on its device."""
    norm = torch.linalg.vector_norm(values)
    low, high = torch.aminmax(values)
    if values.is_cpu and bool(norm.isfinite()):
        num_nonfinite = torch.zeros((), dtype=torch.int64, device="cpu")  # checking the norm is cheap on the CPU
    else:
        num_nonfinite = torch.isfinite(values).logical_not_().sum()
    counts = torch.stack([torch.count_nonzero(values), num_nonfinite])
    return torch.stack([norm, low, high, values.sum()]), counts


def _measured_rows(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Do the same for each row of a matrix."""
    low, high = torch.aminmax(rows, dim=1)
    floats = torch.stack([torch.linalg.vector_norm(rows, dim=1), low, high, rows.sum(1)], 1)
    counts = torch.stack([torch.count_nonzero(rows, 1), torch.isfinite(rows).logical_not_().sum(1)], 1)
    return floats, counts
