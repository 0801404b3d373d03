"""A process group whose ranks share one file: no thread and no tensor of its own, so that a rank's memory is its own.

Why not gloo: its threads free what they have copied, and torch's profiler, which tells of the allocator's events, hears
only of those on the thread that it was started on. Programs name it as a backend:
`init_process_group("shared_memory")`.
"""

import mmap
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import distributed

MAX_BYTES = 2**24  # per rank and collective
SLEEP_S = 0.0005


class SharedMemoryGroup(distributed.ProcessGroup):
    """Exchanges bytes through a file, and returns when all ranks have them."""

    def __init__(self, store: Any, rank: int, size: int) -> None:
        super().__init__(rank, size)
        self.store, self.meetings = store, 0
        if rank == 0:
            handle, name = tempfile.mkstemp(dir=os.environ.get("TMPDIR"))
            os.truncate(handle, MAX_BYTES * size)
            store.set("file", name)
        else:
            name = store.get("file").decode()
            handle = os.open(name, os.O_RDWR)
        self.memory = mmap.mmap(handle, MAX_BYTES * size)
        os.close(handle)
        self.meet()
        if rank == 0:
            Path(name).unlink()

    def getBackendName(self) -> str:  # noqa: N802  # torch calls it so
        """As torch calls it."""
        return "shared_memory"

    @property
    def pg_name(self) -> str:
        """As torch calls it."""
        return str(distributed.distributed_c10d._world.pg_names[self])

    @property
    def group_name(self) -> str:
        """As torch calls it."""
        return self.pg_name

    def _get_backend(self, _device: torch.device) -> "SharedMemoryGroup":
        return self

    def supports_tensor_alloc(self, _device: torch.device) -> bool:
        """Say that it has no memory to offer."""
        return False

    def meet(self) -> None:
        """Wait for all ranks."""
        self.meetings += 1
        self.store.add(f"meeting{self.meetings}", 1)
        while self.store.add(f"meeting{self.meetings}", 0) < self.size():
            time.sleep(SLEEP_S)

    def exchange(self, mine: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Show all ranks what each brings, as bytes; call `meet` when it was read."""
        place = self.rank() * MAX_BYTES
        for part in mine:
            flat = part.reshape(-1).view(np.uint8)
            np.frombuffer(self.memory, np.uint8, flat.size, place)[:] = flat
            place += flat.size
        self.meet()
        return [np.frombuffer(self.memory, np.uint8, MAX_BYTES, rank * MAX_BYTES) for rank in range(self.size())]

    def allreduce(self, tensors: list[torch.Tensor], _opts: Any = None) -> Any:
        """Sum."""
        for array in map(array_of, tensors):
            shown = self.exchange([array])
            sums = sum(part[: array.nbytes].view(array.dtype) for part in shown)
            self.meet()
            array.reshape(-1)[:] = sums
        return done(tensors)

    def broadcast(self, tensors: list[torch.Tensor], opts: Any) -> Any:
        """Take what the root has."""
        for array in map(array_of, tensors):
            array.reshape(-1)[:] = self.exchange([array])[opts.rootRank][: array.nbytes].view(array.dtype)
            self.meet()
        return done(tensors)

    def barrier(self, _opts: Any = None) -> Any:
        """Wait."""
        self.meet()
        return done([])

    def allgather(self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], _opts: Any = None) -> Any:
        """Take what each has."""
        array = array_of(inputs[0])
        shown = self.exchange([array])
        for output, part in zip(outputs[0], shown, strict=True):
            array_of(output).reshape(-1)[:] = part[: array.nbytes].view(array.dtype)
        self.meet()
        return done(outputs[0])

    def _allgather_base(self, output: torch.Tensor, given: torch.Tensor, _opts: Any = None) -> Any:
        array = array_of(given)
        shown = self.exchange([array])
        rows = array_of(output).reshape(self.size(), -1)
        for row, part in zip(rows, shown, strict=True):
            row[:] = part[: array.nbytes].view(array.dtype)
        self.meet()
        return done([output])

    def _reduce_scatter_base(self, output: torch.Tensor, given: torch.Tensor, _opts: Any = None) -> Any:
        array, result = array_of(given), array_of(output)
        shown = self.exchange([array])
        start = self.rank() * result.nbytes
        sums = sum(part[start : start + result.nbytes].view(array.dtype) for part in shown)
        self.meet()
        result.reshape(-1)[:] = sums
        return done([output])

    all_gather_single = _allgather_base  # as torch 2.13 calls them
    reduce_scatter_single = _reduce_scatter_base

    def scatter(self, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]], opts: Any) -> Any:
        """Take one's own part of what the root has."""
        result = array_of(outputs[0])
        parts = [array_of(part) for part in inputs[0]] if inputs else []
        start = self.rank() * result.nbytes
        shown = self.exchange(parts)
        result.reshape(-1)[:] = shown[opts.rootRank][start : start + result.nbytes].view(result.dtype)
        self.meet()
        return done(outputs)


def array_of(tensor: torch.Tensor) -> np.ndarray:
    """Show the memory of a tensor."""
    shown: np.ndarray = tensor.detach().numpy()
    return shown


def done(tensors: list[torch.Tensor]) -> Any:
    """Return the handle of what is over."""
    future: Any = torch.futures.Future()
    future.set_result(tensors)
    return torch._C._distributed_c10d._create_work_from_future(future)


def make(store: Any, rank: int, size: int, _timeout: Any) -> SharedMemoryGroup:
    """Make one, as torch asks for it."""
    return SharedMemoryGroup(store, rank, size)


distributed.Backend.register_backend("shared_memory", make, devices=["cpu"])
