"""The tensors that models were given: what came from outside, as opposed to what a model made for itself.

A dropout mask, a causal mask and the indices of positions have no `grad_fn`, as a batch has none. The difference is
that the batch was an argument of the outermost call. Only weak references are kept: no tensor lives longer because of
it.
"""

from collections.abc import Iterator
from types import FrameType
from typing import Any, cast

import torch

from gradinspect.recording.names.variables import elements_of, isinstance_safely
from gradinspect.recording.values.storages import storages_within
from gradinspect.torch_api.modules import call_keywords
from gradinspect.torch_api.tensors import key_of_storage
from gradinspect.torch_api.weak import HiddenRef, HiddenTensorRef

FEW = 256  # tensors kept without checking whether they are still alive
MAX_NESTING = 8  # containers in containers


class ModelInputs:
    """The arguments of the outermost module calls."""

    def __init__(self) -> None:
        """Start empty."""
        self._given: dict[int, HiddenTensorRef] = {}
        self._limit = FEW
        self._left: dict[int, HiddenRef] = {}  # storages, by their keys

    def note(self, arguments: object, frame: FrameType | None) -> None:
        """Note the arguments of a call, without touching a tensor.

        Args:
            arguments: The positional ones.
            frame: The frame that calls the hooks of the module; it knows the others.
        """
        for tensor in _tensors_in((arguments, call_keywords(frame)), MAX_NESTING):
            self._given[id(tensor)] = HiddenTensorRef(tensor)
        if len(self._given) > self._limit:
            self._given = {key: given for key, given in self._given.items() if given() is not None}
            self._limit = max(2 * len(self._given), FEW)

    def storage_keys(self) -> frozenset[int]:
        """Return the keys of their storages, as far as they are alive."""
        left = frozenset(key for key, storage in self._left.items() if storage() is not None)
        return left.union(map(key_of_storage, self._storages()))

    def drop_tensors(self) -> None:
        """Refer to no tensor any more: afterwards, torch would refuse to swap one that has a weak reference of ours."""
        self._left |= {key_of_storage(storage): HiddenRef(storage) for storage in self._storages()}
        self._given = {}

    def _storages(self) -> Iterator[Any]:
        return storages_within([tensor for given in self._given.values() if (tensor := given()) is not None])


def _tensors_in(value: object, nesting: int) -> Iterator[torch.Tensor]:
    if isinstance_safely(value, (torch.Tensor,)):
        yield cast("torch.Tensor", value)
    elif nesting:
        for item in elements_of(value):
            yield from _tensors_in(item, nesting - 1)
