"""Optimizers that step with gradients a GradScaler has multiplied, and nobody has divided again."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any
from weakref import ReferenceType, ref

import torch
from torch.amp import GradScaler, grad_scaler

from gradinspect.torch_api.nodes import sequence_nr

SCALER_FILE = grad_scaler.__file__
MAX_NUMBERS = 10_000


@dataclass
class ScaledLosses:
    """Tracks the nodes of the graph that multiply a loss by a scale."""

    identity_of: Callable[[Any], int] = sequence_nr  # of a live node
    _scalers: dict[int, ReferenceType[GradScaler]] = field(default_factory=dict)  # by identity of the node

    def note(self, scaler: GradScaler, scaled: Any) -> None:
        """Note what `scaler.scale` has returned; a disabled scaler returns what it got."""
        if not scaler.is_enabled() or len(self._scalers) > MAX_NUMBERS:
            return
        for tensor in scaled if isinstance(scaled, list | tuple) else (scaled,):
            if isinstance(tensor, torch.Tensor) and tensor.grad_fn is not None:
                self._scalers[self.identity_of(tensor.grad_fn)] = ref(scaler)

    def scaler_in(self, numbers: Collection[int]) -> ReferenceType[GradScaler] | None:
        """Return the scaler whose node is among those of a graph."""
        if not self._scalers:
            return None
        found = self._scalers.keys() & set(numbers)
        return self._scalers[found.pop()] if found else None


def has_scale(scaler: ReferenceType[GradScaler] | None) -> bool:
    """Return whether a scaler multiplies by something other than 1. Reads its scale."""
    living = None if scaler is None else scaler()
    return living is not None and living.get_scale() != 1
