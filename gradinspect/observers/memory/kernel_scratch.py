"""What a kernel needs for itself while it runs, and gives back before it returns: asked from the kernel itself.

NOTE [Kernels that are run to be measured]
oneDNN's convolutions and recurrent layers copy their arguments into layouts of their own, how large only oneDNN knows.
So each is run once, on zeros of the same shapes, strides and dtypes, while torch's profiler lists what the allocator
gives out. Equal ones are measured once. One that would need more than a second or 256 MiB is not: the reader is told.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.profiler import profile

from gradinspect.observers.gradients.timing import start_quietly
from gradinspect.recording.storages import plain_tensors
from gradinspect.torch_api.engine import is_profiling
from gradinspect.torch_api.fakes import FakeTensor, unset_fake_temporarily
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.profiling import has_memory_events, profiled_events

MAX_TRIAL_BYTES = 2**28  # of the arguments
MAX_TRIAL_PRODUCTS = 2**33  # multiplications: about a second on one core
UNKNOWN_SCRATCH = (
    "A convolution or recurrent layer is too large to be run for its scratch memory, which is not counted."
)
_ATEN = torch.ops.aten
_WEIGHT = {
    _ATEN.convolution.default: 1,
    _ATEN.convolution_backward.default: 2,
    _ATEN.mkldnn_rnn_layer.default: 1,
    _ATEN.mkldnn_rnn_layer_backward.default: 1,
}


class KernelScratch:
    """Measures kernels, each once."""

    def __init__(self) -> None:
        """Know none."""
        self.notes: dict[str, None] = {}
        self._known: dict[object, int] = {}

    def bytes_of(self, func: Any, args: tuple[Any, ...]) -> int:
        """Return what an operator needs at its peak beyond its arguments; 0 if that is only what it returns."""
        place = _WEIGHT.get(func)
        if place is None or not isinstance(args[place], FakeTensor) or args[place].device.type != "cpu":
            return 0
        looks = tuple(map(_look, args))
        if (func, looks) not in self._known:
            self._known[func, looks] = self._measured(func, args, args[place], looks)
        return self._known[func, looks]

    def _measured(
        self, func: Callable[..., Any], args: tuple[Any, ...], weight: torch.Tensor, looks: tuple[Any, ...]
    ) -> int:
        num_bytes = sum(tensor.nbytes for tensor in plain_tensors(list(args)))
        if num_bytes > MAX_TRIAL_BYTES or _products(args, weight) > MAX_TRIAL_PRODUCTS:
            self.notes[UNKNOWN_SCRATCH] = None
            return 0
        if is_profiling() or not has_memory_events():
            return 0
        with unset_fake_temporarily(), unobserved():
            return _peak_of(func, [_zeros(*look) if type(look) is _Look else look for look in looks])


class _Look(tuple[tuple[int, ...], tuple[int, ...], torch.dtype]):
    """The shape, strides and dtype of a tensor."""

    __slots__ = ()


def _look(arg: Any) -> Any:
    if isinstance(arg, torch.Tensor):
        return _Look((tuple(arg.shape), arg.stride(), arg.dtype))
    return tuple(arg) if isinstance(arg, list | tuple) else arg


def _zeros(shape: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return torch.empty_strided(shape, stride, dtype=dtype).zero_()


def _products(args: tuple[Any, ...], weight: torch.Tensor) -> int:
    """Return about how many numbers are multiplied: for each pixel of the larger side, all weights.

    A recurrent layer has two matrices of weights, and its input has the features last.
    """
    is_recurrent = weight.dim() == 2
    sides = [
        arg for arg in args[:3] if isinstance(arg, torch.Tensor) and arg.dim() == weight.dim() and arg is not weight
    ]
    sides = [args[0]] if is_recurrent else sides
    pixels = max((side.numel() // max(side.shape[-1 if is_recurrent else 1], 1) for side in sides), default=0)
    return int(pixels * weight.numel() * (2 if is_recurrent else 1))


def _peak_of(func: Callable[..., Any], args: list[Any]) -> int:
    profiler = profile(use_kineto=True, profile_memory=True)
    start_quietly(profiler)
    try:
        result = func(*args)
    finally:
        profiler.__exit__(None, None, None)
    del result
    alive = peak = 0
    for event in sorted(profiled_events(profiler, "\0"), key=lambda event: event.time_ns):
        alive += event.num_bytes
        peak = max(peak, alive)
    return peak
