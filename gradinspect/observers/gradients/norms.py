"""Norms of weights and values of losses. Those on a device are fetched with the statistics of gradients."""

from collections import Counter
from collections.abc import Sequence

import torch

from gradinspect.recording.outputs import OutputTensor
from gradinspect.recording.values.magnitudes import (
    PIECE,
    UNREADABLE,
    Magnitudes,
    PendingFigures,
    combined_norm,
    magnitudes_of,
    norm_of,
    pending_magnitudes,
    pending_norm,
    why_failed,
    why_unread,
)
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.originals import ops
from gradinspect.units import format_count


class Norms:
    """Norms of tensors by number; what a device computes is known after `settle`."""

    def __init__(self, piece: int = PIECE) -> None:
        """Start empty.

        Args:
            piece: How many elements of a device's tensor are measured at a time.
        """
        self._piece = piece
        self.known: dict[int, float] = {}
        self.unmeasured: Counter[str] = Counter()  # reasons
        self._pending: dict[int, PendingFigures] = {}

    @property
    def pending(self) -> list[PendingFigures]:
        """What is to be fetched."""
        return list(self._pending.values())

    def take(self, number: int, tensor: torch.Tensor) -> None:
        """Take the norm of a tensor, without waiting for its device."""
        try:
            reason = why_unread(tensor)
            if reason is None:
                with unobserved():
                    if tensor.is_cpu:
                        self.known[number] = norm_of(tensor)
                    else:
                        self._pending[number] = pending_norm(tensor, self._piece)
                return
        except UNREADABLE as error:
            reason = why_failed(error, tensor)
        self.unmeasured[reason] += 1

    def add(self, number: int, pending: PendingFigures) -> None:
        """Take the norm of what is still on a device."""
        self._pending[number] = pending

    def settle(self, rows: Sequence[Sequence[Sequence[float]]]) -> None:
        """Store what was fetched, in the order of `pending`."""
        for number, several in zip(self._pending, rows, strict=False):
            self.known[number] = combined_norm(several)
        if len(rows) < len(self._pending):
            self.unmeasured["its device has failed"] += len(self._pending) - len(rows)
        self._pending.clear()

    def notes(self, what: str) -> tuple[str, ...]:
        """Say in sentences what is not known, and why."""
        return tuple(
            f"The {what} of {format_count(number, 'weight')} was not measured: {reason}."
            for reason, number in self.unmeasured.most_common()
        )


def scalar_value(outputs: Sequence[OutputTensor]) -> float | None:
    """Return the value of a loss on the CPU; None unless it is one real scalar that can be read without waiting."""
    scalar = _scalar(outputs)
    found = None if scalar is None or not scalar.is_cpu else _measured(scalar)
    return found.mean if isinstance(found, Magnitudes) else None


def pending_scalar(outputs: Sequence[OutputTensor]) -> PendingFigures | None:
    """Return the value of a loss on a device, still to be fetched: it is the mean of the one element."""
    scalar = _scalar(outputs)
    found = None if scalar is None or scalar.is_cpu else _measured(scalar)
    return found if isinstance(found, PendingFigures) else None


def _scalar(outputs: Sequence[OutputTensor]) -> torch.Tensor | None:
    value = outputs[0].value if len(outputs) == 1 else None
    if not isinstance(value, torch.Tensor) or why_unread(value) is not None:
        return None
    with unobserved():
        return value if ops.numel(value) == 1 and not ops.is_complex(value) else None


def _measured(scalar: torch.Tensor) -> Magnitudes | PendingFigures | None:
    try:
        with unobserved():
            return magnitudes_of(scalar) if scalar.is_cpu else pending_magnitudes(scalar)
    except UNREADABLE:  # as of a tensor inside a transform
        return None
