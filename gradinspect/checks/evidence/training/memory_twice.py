"""Two parameters of optimizers in one memory, which is then updated twice in each iteration.

NOTE [One memory]
Parameters in one memory share its start and have equally many elements. Parts of a flat buffer, as the weights of an
RNN or the parameters of FSDP are, begin at different places. A parameter without a gradient is not updated, so it does
not count: an optimizer may hold both a flat buffer and the parameters in it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple
from weakref import ReferenceType

import torch
from torch import nn
from torch.optim import Optimizer

from gradinspect.checks.evidence.training.gradient_use import GradientUse, gradient_of, held_by
from gradinspect.checks.evidence.training.registrations import Registrations
from gradinspect.torch_api.patching.classes import is_one_of
from gradinspect.torch_api.patching.originals import ops
from gradinspect.torch_api.weak import HiddenRef

NUM_STEPS = 2  # of each optimizer that are looked at


class TwoInOne(NamedTuple):
    """Two parameters in one memory, and where the second came to share it."""

    first: torch.Tensor
    second: torch.Tensor
    made: int | None
    step: int | None


class _Place(NamedTuple):
    """Memory. NOTE [One memory]."""

    address: int
    num_elements: int
    dtype: torch.dtype
    device: torch.device


@dataclass
class MemoryTwice:
    """Tracks the memory of the parameters that optimizers update. The log calls it with what it sees."""

    registrations: Registrations
    gradients: GradientUse
    found: list[tuple[ReferenceType[torch.Tensor], ReferenceType[torch.Tensor], int | None, int | None]] = field(
        default_factory=list
    )
    _by_place: dict[_Place, ReferenceType[torch.Tensor]] = field(default_factory=dict)
    _assigned: dict[int, tuple[ReferenceType[torch.Tensor], int, int | None]] = field(default_factory=dict)

    def assigned(self, tensor: torch.Tensor, frame: int | None) -> None:
        """Note that the program has set `.data`."""
        self._assigned[id(tensor)] = HiddenRef(tensor), len(self._assigned), frame

    def assigned_at(self, tensor: torch.Tensor) -> int | None:
        """Return the frame of an assignment that gave a parameter the memory of a tensor."""
        place = _place_of(tensor)
        for known, _, frame in self._assigned.values():
            one = known()
            if one is not None and place is not None and _place_of(one) == place:
                return frame
        return None

    def before_step(self, optimizer: Optimizer, frame: int | None) -> None:
        """Look at what an optimizer is about to update."""
        held = held_by(optimizer)
        keys = set(map(id, held))
        for tensor in held:
            place = _place_of(tensor)
            if place is None or gradient_of(tensor) is None:
                continue
            known = self._by_place.setdefault(place, HiddenRef(tensor))
            other = known()
            if other is None or _place_of(other) != place:
                self._by_place[place] = HiddenRef(tensor)
            elif other is tensor or not (id(other) in keys or self.gradients.is_read_here(other)):
                continue
            elif gradient_of(other) is not None:
                self._note(other, tensor, frame)

    def pairs(self) -> Iterator[TwoInOne]:
        """Yield those that still exist."""
        for first, second, made, step in self.found:
            one, other = first(), second()
            if one is not None and other is not None:
                yield TwoInOne(one, other, made, step)

    def _note(self, one: torch.Tensor, other: torch.Tensor, step: int | None) -> None:
        if any({id(one), id(other)} == {id(first()), id(second())} for first, second, _, _ in self.found):
            return
        first, second = sorted((one, other), key=self._order)
        assigned, registered = self._assignment(second), self.registrations.first_of(second)
        made = assigned[1] if assigned is not None else None if registered is None else registered.frame
        self.found.append((HiddenRef(first), HiddenRef(second), made, step))

    def _order(self, tensor: torch.Tensor) -> tuple[int, int]:
        """Return a larger key for a tensor that got the memory later: it was assigned, or else registered, later."""
        assigned, registered = self._assignment(tensor), self.registrations.first_of(tensor)
        return -1 if assigned is None else assigned[0], -1 if registered is None else registered.order

    def _assignment(self, tensor: torch.Tensor) -> tuple[int, int | None] | None:
        known = self._assigned.get(id(tensor))
        return known[1:] if known is not None and known[0]() is tensor else None


def _place_of(tensor: torch.Tensor) -> _Place | None:
    """Return the memory of an ordinary tensor that has any."""
    if not is_one_of(tensor, (torch.Tensor, nn.Parameter)) or tensor.layout is not torch.strided:
        return None
    address, num_elements = ops.data_ptr(tensor), ops.numel(tensor)
    return _Place(address, num_elements, tensor.dtype, tensor.device) if address and num_elements else None
