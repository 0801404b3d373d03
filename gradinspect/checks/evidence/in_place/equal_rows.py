"""Matrices whose rows are all equal, before the first step and after several.

NOTE [Equal rows]
A row of a weight is a unit of its layer. Where all are equal, and the next layer treats all alike, each gets the same
gradient, so that they stay equal. Each matrix is reduced to two numbers at each backward call: how far its rows are
apart, and its norm. One that has different rows once is not looked at again, so this costs something in the first call
only. What no step has changed is another mistake.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from weakref import ReferenceType

import torch

from gradinspect.recording.values.magnitudes import UNREADABLE, PendingFigures, elements_of, why_unread, wide_dtype
from gradinspect.torch_api.devices.graph_capture import is_capturing
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.originals import ops
from gradinspect.torch_api.weak import HiddenRef

LEAST_STEPS = 3
Leaves = Sequence[tuple[torch.Tensor, str]]  # with their names


@dataclass
class EqualRows:
    """A matrix whose rows have been equal until now."""

    key: int  # the parameter's id
    tensor: ReferenceType[torch.Tensor]
    name: str
    num_rows: int
    backward: int | None  # the frame
    norm: float | None = None
    num_steps: int = 0  # that changed it


@dataclass
class EqualRowsLog:
    """Compares rows. The log of the parameters calls it with what it sees. NOTE [Equal rows]."""

    _open: dict[int, EqualRows] = field(default_factory=dict)  # by the parameter's id
    _differ: set[int] = field(default_factory=set)  # ids
    _compared: list[tuple[EqualRows, PendingFigures]] = field(default_factory=list)

    def begin(self, leaves: Leaves, backward: int | None) -> None:
        """Reduce what had equal rows until now to figures, before a backward call."""
        self._compared = []
        if is_capturing():  # NOTE [Captured kernels]
            return
        for tensor, name in leaves:
            one = self._known_or_new(tensor, name, backward)
            figures = None if one is None else _figures(tensor)
            if one is not None and figures is not None:
                self._compared.append((one, figures))

    @property
    def pending(self) -> list[PendingFigures]:
        """What is to be fetched."""
        return [figures for _, figures in self._compared]

    def settle(self, rows: Sequence[Sequence[Sequence[float]]]) -> None:
        """Take what was fetched; nothing if the device has failed."""
        compared, self._compared = self._compared, []
        for (one, _), ((distance, norm),) in zip(compared, rows, strict=False):
            if distance != 0:  # or not a number
                self._differ.add(one.key)
                self._open.pop(one.key, None)
            else:
                one.num_steps += one.norm not in (None, norm)
                one.norm = norm

    def found(self) -> Iterator[EqualRows]:
        """Yield those that several steps have changed, each row alike."""
        yield from (one for one in self._open.values() if one.num_steps >= LEAST_STEPS and one.norm)

    def _known_or_new(self, tensor: torch.Tensor, name: str, backward: int | None) -> EqualRows | None:
        known = self._open.get(id(tensor))
        if known is not None and known.tensor() is tensor:
            return known
        if id(tensor) in self._differ or not _has_rows(tensor):
            return None
        new = self._open[id(tensor)] = EqualRows(id(tensor), HiddenRef(tensor), name, tensor.shape[0], backward)
        return new


def _has_rows(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is a matrix of several rows and columns, which can be read."""
    if tensor.is_nested:
        return False  # and has no shape
    is_matrix = len(tensor.shape) > 1 and tensor.shape[0] > 1 and ops.numel(tensor) > tensor.shape[0]
    return is_matrix and ops.is_floating_point(tensor) and why_unread(tensor) is None


def _figures(tensor: torch.Tensor) -> PendingFigures | None:
    """Reduce a matrix to how far its rows are apart, and its norm."""
    try:
        with unobserved():
            values = ops.detach(tensor)
            distance = ops.amax(ops.sub(ops.amax(values, 0), ops.amin(values, 0)))
            norm = ops.vector_norm(elements_of(tensor))
            wide = wide_dtype(values)
            return PendingFigures(ops.numel(tensor), [ops.stack([ops.to(one, wide) for one in (distance, norm)])])
    except UNREADABLE:
        return None
