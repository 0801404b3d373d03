"""Samples that a dataset changes in its own memory whenever they are asked for, so that each epoch changes them again.

NOTE [Changed again]
Lines below a `__getitem__` write to a tensor, which becomes part of a batch. When one writes there once more, the
memory still holds what the last of them had left, and is changed once more: then it is the dataset's own, and no copy
of it. What is changed to the same values, as by a clamp or a mean that is 0 by now, does no harm. A counter is no part
of a batch. Memory of torch must not have been given back meanwhile, as that of a copy is, whose address another copy
may have. What is filled anew, as a buffer is from the data, does not depend on what was left there.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any, NamedTuple

import torch
from msgspec import Struct

from gradinspect.checks.evidence.in_place.shared_memory import checksum_of, is_from_numpy
from gradinspect.checks.evidence.values.result_states import SizeLimit
from gradinspect.checks.evidence.values.torch_calls import FILLS
from gradinspect.checks.facts.value_flow import short_name
from gradinspect.checks.facts.values import ChangedSamples
from gradinspect.graph import Frame
from gradinspect.recording.frames import is_own_file, line_at
from gradinspect.recording.transparency.own_errors import OwnErrors
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.originals import ops
from gradinspect.torch_api.weak import HiddenRef

LEAST_CHANGES = 3
MOST_ELEMENTS = 262_144
MOST_SAMPLES = 10_000
LEAST_CHANGE = 1e-4  # of the largest value
_REPLACES = FILLS | frozenset(("copy_", "set_", "__setitem__", "setitem"))
_MAX_FRAMES = 8  # from a write up to __getitem__, as by transforms
_Place = tuple[int, int]  # the address and the size of a sample


class _Sample(Struct):
    """What the last line that wrote there has left of a sample."""

    left: int | None  # a checksum
    memory: HiddenRef | None  # the storage; None of memory that is not torch's, which tensors come and go to
    is_in_batch: bool = False  # since then

    def is_there(self) -> bool:
        """Return whether it was used, and is still in the same memory."""
        return self.is_in_batch and (self.memory is None or self.memory() is not None)


class _Begun(NamedTuple):
    """A write that is running."""

    tensor: torch.Tensor
    place: _Place
    before: torch.Tensor | None  # a copy, if the memory holds what was left there


class SampleLog:
    """Looks at writes to samples. NOTE [Changed again]."""

    functions = frozenset(("stack",))

    def __init__(self, errors: OwnErrors) -> None:
        """Count what is too much by `errors`."""
        self._errors = errors
        self._limit = SizeLimit(errors, "sample that is changed in place", MOST_ELEMENTS)
        self._samples: dict[_Place, _Sample] = {}
        self._changes: dict[int | None, int] = {}  # of samples that had been changed before, by the line

    def note(self, _function: str, args: Sequence[Any], _kwargs: Mapping[str, Any], _number: int | None) -> None:
        """Look at what becomes a batch."""
        given = args[0] if args and self._samples else ()
        for one in given if isinstance(given, list | tuple) else ():
            sample = None
            if type(one) is torch.Tensor and not one.requires_grad:
                sample = self._samples.get(_place_of(one))
            if sample is not None:
                sample.is_in_batch = True

    def begin(self, function: str, tensor: Any, frame: FrameType | None) -> _Begun | None:
        """Look at a write that is about to start."""
        if type(tensor) is not torch.Tensor or tensor.requires_grad or frame is None or not _is_below_getitem(frame):
            return None
        line = hash((frame.f_code, line_at(frame)))
        if not (tensor.is_cpu and ops.is_floating_point(tensor) and self._limit.allows(tensor, line)):
            return None
        place = _place_of(tensor)
        sample = None if short_name(function) in _REPLACES else self._samples.get(place)
        is_again = sample is not None and sample.is_there() and sample.left == checksum_of(tensor)
        with unobserved():
            return _Begun(tensor, place, ops.clone(ops.detach(tensor)) if is_again else None)

    def end(self, begun: _Begun, number: int | None) -> None:
        """Look at it when it has returned, given the frame that it is on."""
        if begun.before is not None:
            with unobserved():
                change = ops.item(ops.amax(ops.abs(ops.sub(begun.tensor, begun.before))))
                largest = ops.item(ops.amax(ops.abs(begun.before)))
            self._changes[number] = self._changes.get(number, 0) + (change > LEAST_CHANGE * largest)
        if begun.place not in self._samples and len(self._samples) >= MOST_SAMPLES:
            self._errors.pass_over("sample that is changed in place", f"after the first {MOST_SAMPLES:,}")
            return
        memory = None if is_from_numpy(begun.tensor) else HiddenRef(ops.untyped_storage(begun.tensor))
        self._samples[begun.place] = _Sample(checksum_of(begun.tensor), memory)

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[ChangedSamples]:
        """Yield the lines that have changed several samples again."""
        for number, count in self._changes.items():
            if count >= LEAST_CHANGES:
                yield ChangedSamples(num_times=count, written=frame_of(number))


def _is_below_getitem(frame: FrameType | None) -> bool:
    for _ in range(_MAX_FRAMES):
        if frame is None:
            return False
        if frame.f_code.co_name == "__getitem__":
            return is_own_file(frame.f_code.co_filename)
        frame = frame.f_back
    return False


def _place_of(tensor: torch.Tensor) -> _Place:
    return ops.data_ptr(tensor), ops.numel(tensor) * tensor.itemsize
