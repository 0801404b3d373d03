"""Keep what a program reads of its tensors in real steps, which a run on fake tensors reads again.

NOTE [A run for its values] It is one more run of the program, in a process of its own, which may take no more memory
than the machine has, and no longer than `MOST_SECONDS`.
"""

import ctypes
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from gradinspect.fake.patches import patched_reads
from gradinspect.fake.read_values import (
    ReadPlace,
    depends_on_values,
    is_read_by_kernels,
    makes_sizes,
    place_of,
    shapes_of,
)
from gradinspect.observers.memory.kernel_scratch import run_measured
from gradinspect.observers.memory.step_memory_observer import StepMemoryObserver
from gradinspect.observers.memory.storage_purposes import Label
from gradinspect.reads import MadeTensor, ReadValues, TensorRead
from gradinspect.recording.values.storages import plain_tensors, storage_of
from gradinspect.runner.engine import CallEnd, EngineCall
from gradinspect.runner.observer import Observer
from gradinspect.runner.run import Run
from gradinspect.torch_api.devices import accelerators
from gradinspect.torch_api.modes import TorchDispatchMode, unobserved
from gradinspect.torch_api.patching.originals import ops

MOST_SECONDS = 300.0
MOST_BYTES = 2**27  # of contents that are kept


class ReadValuesObserver(Observer[ReadValues]):
    """Watches the steps that `fit` watches, and stops the program after them."""

    takes_any_call = True

    def __init__(self, run: Run, num_steps: int) -> None:
        """Start before the program does."""
        self._run = run
        self._reads = _ReadRecorder()
        self._steps = StepMemoryObserver(run, num_steps, tracker=self._reads)

    @property
    def is_partial(self) -> bool:  # type: ignore[override]  # it changes
        """Whether steps that were asked for are still to come."""
        return self._steps.is_partial

    @property
    def has_left(self) -> bool:  # type: ignore[override]  # it changes
        """Whether all steps that were asked for are complete."""
        return self._steps.has_left

    @property
    def keeps_trace(self) -> bool:  # type: ignore[override]  # it changes
        """Whether the program has got to what it reads: before that, it fails since it was run before."""
        return bool(self._reads.found)

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Keep what is read."""
        _stay_within_memory()
        self._run.stop_after(MOST_SECONDS)
        with self._steps.attached(), patched_reads(self._reads.reading):
            yield

    def on_call(self, call: EngineCall) -> CallEnd | None:
        """Look at a backward call as `fit` does."""
        self.problem = self.problem or self._steps.problem
        return self._steps.on_call(call)

    def result(self) -> ReadValues | None:
        """Return what was read; None before the first backward call."""
        if not self._steps.phases.step:
            return None
        return ReadValues(num_steps=self._steps.num_watched, reads=tuple(self._reads.found))


class _ReadRecorder(TorchDispatchMode):
    """Keeps reads while it is active, in the place of what keeps a ledger. Use it as a context manager."""

    notes: tuple[str, ...] = ()

    def __init__(self) -> None:
        super().__init__()
        self.found: list[TensorRead] = []
        self._bytes_left = MOST_BYTES

    def label(self, labels: Iterable[Label]) -> None:
        """Do nothing: no memory is followed."""

    def moved_on(self) -> None:
        """Do nothing, for the same reason."""

    def settle(self) -> None:
        """Do nothing: what was found is up to date."""

    def reading(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        """Replace a method that reads all elements."""

        def read(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            place = place_of(name, sys._getframe(1))
            result = original(tensor, *args, **kwargs)
            self._keep(place, (tensor,), kind=str(tensor.dtype), contents=self._contents(tensor))
            return result

        return read

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run the operator, and keep what it has read."""
        if not depends_on_values(func, args):
            return func(*args, **(kwargs or {}))
        place = place_of(str(func), sys._getframe(1))
        result, peak = (
            run_measured(func, args, kwargs or {}) if makes_sizes(func) else (func(*args, **(kwargs or {})), 0)
        )
        if isinstance(result, bool | int | float | complex):
            self._keep(place, args, number=repr(result), kind=type(result).__name__)
        else:
            made = tuple(
                _made(one, self._contents(one) if is_read_by_kernels(func, number) else None)
                for number, one in enumerate(plain_tensors(result))
            )
            self._keep(place, args, made=made, scratch_bytes=peak)
        return result

    def _keep(self, place: ReadPlace, args: tuple[Any, ...], **answer: Any) -> None:
        self.found.append(TensorRead(**place._asdict(), shapes=shapes_of(args), **answer))

    def _contents(self, tensor: torch.Tensor) -> bytes | None:
        """Copy the elements of a tensor, by rows; None where too many have been copied."""
        num_bytes = ops.numel(tensor) * tensor.itemsize
        if num_bytes > self._bytes_left:
            return None
        self._bytes_left -= num_bytes
        with unobserved():
            copied = ops.contiguous(ops.to(ops.detach(tensor), "cpu"))
            return ctypes.string_at(ops.data_ptr(copied), num_bytes)


def _stay_within_memory() -> None:
    """Let what asks for more memory than the machine has left fail, rather than have the system end some process."""
    if accelerators.is_there():
        return  # whose drivers reserve far more addresses than memory
    with suppress(Exception):  # another system, or the program has replaced what reads files
        resource = import_module("resource")
        lines = Path("/proc/meminfo").read_text().splitlines()
        left = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        most = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (used + left, most))


def _made(tensor: torch.Tensor, contents: bytes | None) -> MadeTensor:
    storage = storage_of(tensor)
    return MadeTensor(
        shape=tuple(tensor.shape),
        strides=tuple(ops.stride(tensor)),
        offset=int(ops.storage_offset(tensor)),
        num_elements=0 if storage is None else storage.nbytes() // tensor.itemsize,
        dtype=str(tensor.dtype).removeprefix("torch."),
        contents=contents,
    )
