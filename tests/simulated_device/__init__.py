"""A device that is not the CPU, on any machine with a compiler: two of them, `sim:0` and `sim:1`.

What is real about it: memory of its own, through an allocator that torch's profiler is told of as of CUDA's; a thread
of its own in the autograd engine for each device, where hooks, double backward and what a checkpoint computes again
run; pinned memory; the optimizers that are the default on accelerators; fused recurrent cells; values that have to be
fetched; counts of all that, as witnesses.

What is not: nothing runs later than it was asked to, so streams have nothing to wait for and events have happened;
memory is given back at once, not kept by a caching allocator; random numbers are the CPU's, and so are the results of
operators, bit for bit: NOTE [Operators on the simulated device] in device.cpp.

NOTE [Programs that name no device]
The programs of the tests name no device, and are run unchanged, with every line where it is. `torch.set_default_device`
would put a function mode around all that they do, in one of their threads. So a library that is loaded before torch
answers in its place where torch asks, in C++, for the device of a tensor that names none: no mode, no wrapper around a
function, every thread. A program that fills such tensors at random draws the CPU's numbers.
"""

import ctypes
import os
from types import SimpleNamespace
from typing import Any

import torch

NAME = "sim"


class DeviceModule:
    """What torch looks for under `torch.sim`."""

    def __init__(self, extension: Any) -> None:
        """Wrap the extension."""
        self._extension = extension
        self.default_generators = ()

    def is_available(self) -> bool:
        """Say whether there is a device."""
        return True

    def is_initialized(self) -> bool:
        """Say whether its context exists."""
        return True

    def _is_in_bad_fork(self) -> bool:
        return False

    def _lazy_init(self) -> None:
        pass

    def device_count(self) -> int:
        """Return how many devices there are."""
        return 2

    def current_device(self) -> int:
        """Return the index of this thread's device."""
        return int(self._extension.current_device())

    def set_device(self, device: Any) -> None:
        """Choose this thread's device."""
        self._extension.set_device(self._index(device))

    def _index(self, device: Any = None) -> int:
        if isinstance(device, int):
            return device
        index = None if device is None else torch.device(device).index
        return self.current_device() if index is None else int(index)

    def device(self, device: Any) -> Any:
        """Choose this thread's device for a block."""
        return torch.accelerator.device_index(self._index(device))

    def synchronize(self, device: Any = None) -> None:
        """Wait for nothing."""

    def manual_seed(self, seed: int) -> None:
        """Leave the seed to the CPU, whose numbers are used."""

    def manual_seed_all(self, seed: int) -> None:
        """Leave the seed to the CPU, whose numbers are used."""

    def get_rng_state(self, device: Any = None) -> torch.Tensor:
        """Return the state of the CPU's generator."""
        return torch.get_rng_state()

    def set_rng_state(self, state: torch.Tensor, device: Any = None) -> None:
        """Set the state of the CPU's generator."""
        torch.set_rng_state(state)

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        """Return the types of autocast."""
        return [torch.float16, torch.bfloat16]

    def memory_allocated(self, device: Any = None) -> int:
        """Return the bytes in use."""
        return int(self._extension.allocated(self._index(device)))

    def max_memory_allocated(self, device: Any = None) -> int:
        """Return the most bytes in use since the last reset."""
        return int(self._extension.peak(self._index(device)))

    def allocations(self, device: Any = None) -> int:
        """Return how often memory was asked for."""
        return int(self._extension.allocations(self._index(device)))

    def reset_peak_memory_stats(self, device: Any = None) -> None:
        """Begin a new peak."""
        self._extension.reset_peak(self._index(device))

    def empty_cache(self) -> None:
        """Give back nothing, since nothing is kept."""

    def witnessed(self) -> SimpleNamespace:
        """Return how often the program waited for the device: values read, and copies to and from the CPU."""
        counts = self._extension
        return SimpleNamespace(
            values_read=counts.values_read(),
            copies_to_host=counts.copies_to_host(),
            copies_from_host=counts.copies_from_host(),
        )


def register(extension: Any) -> None:
    """Make the device known to torch, once in a process."""
    torch.utils.rename_privateuse1_backend(NAME)
    torch._register_device_module(NAME, DeviceModule(extension))
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)


def be_the_default() -> None:
    """Make tensors on it wherever a program names no device: NOTE [Programs that name no device]."""
    ctypes.CDLL(os.environ["LD_PRELOAD"]).make_the_default()
    if torch.empty(0).device.type != NAME:
        raise RuntimeError("The library of the default device was not asked.")
