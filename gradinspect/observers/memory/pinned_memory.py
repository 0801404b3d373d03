"""Notice memory of the host that is page-locked, whose allocator torch's profiler does not see.

It is seen when a tensor is pinned, or copied from it to a device, and followed until its storage is gone. Nothing is
asked of a device before the program itself has used it: the question would make its context.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple
from weakref import ref

import torch

from gradinspect.analyses.memory.step import PINNED
from gradinspect.recording.values.storages import storage_of
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.originals import ops

PINNED_NOTE = (
    "Pinned memory is that of tensors that were seen being pinned, or copied to a device; its allocator rounds up, and "
    "keeps what is given back."
)
_PIN = torch.Tensor.pin_memory
_COPIED: dict[Any, int] = {_PIN: 0, torch.Tensor.to: 0, torch.Tensor.cuda: 0, torch.Tensor.copy_: 1}


class Candidate(NamedTuple):
    """A tensor that may be pinned, given to a function that runs."""

    tensor: torch.Tensor
    is_being_pinned: bool


class PinnedMemory:
    """Tracks the storages that are pinned now."""

    def __init__(self, on_end: Callable[[tuple[str, int]], None]) -> None:
        """Start empty.

        Args:
            on_end: Called with the place of one that is gone.
        """
        self.was_seen = False
        self._on_end = on_end
        self._alive: dict[int, Any] = {}  # address -> its finalizer

    def candidate(self, func: Any, args: tuple[Any, ...]) -> Candidate | None:
        """Return the tensor to look at when a function has returned."""
        place = _COPIED.get(func)
        if place is None or len(args) <= place or not isinstance(args[place], torch.Tensor):
            return None
        return Candidate(args[place], func is _PIN)

    def found(self, candidate: Candidate, result: Any) -> list[tuple[tuple[str, int], int]]:
        """Return places and bytes of what is pinned, and was not known."""
        tensors = [one for one in (candidate.tensor, result) if isinstance(one, torch.Tensor)]
        with unobserved():
            on_host = [one for one in tensors if one.device.type == "cpu"]
            if len(on_host) == len(tensors) and not candidate.is_being_pinned:
                return []
            storages = [storage_of(one) for one in on_host if ops.is_pinned(one)]
        return [place for storage in storages if storage is not None for place in self._follow(storage)]

    def place_of(self, place: tuple[str, int]) -> tuple[str, int]:
        """Return where memory of the host is: among what is pinned, or as given."""
        return (PINNED, place[1]) if place[1] in self._alive and place[0] == "cpu" else place

    def _follow(self, storage: Any) -> list[tuple[tuple[str, int], int]]:
        address = storage.data_ptr()
        if address in self._alive:
            return []
        self.was_seen = True
        self._alive[address] = ref(storage, partial(self._ended, address))
        return [((PINNED, address), storage.nbytes())]

    def _ended(self, address: int, _reference: object) -> None:
        self._alive.pop(address, None)
        self._on_end((PINNED, address))
