"""Every operator that writes into memory while the program runs: which memory, at which version, on which line.

NOTE [When a write happened]
torch numbers the nodes of a thread, so the number that the next node would get is a clock. A write that came later than
the node that saved is one at a larger number; at the very next number it may be the node's own operator, which makes
its node, writes, and then saves. Such a one is told by being able to make a node at all. What was written before the
memory was given to somebody else needs no care: a saved tensor keeps its memory from before it was saved. A custom
Function is numbered before its forward runs, and saves after it: what was written below the line that applied it came
before.

A write is seen below autograd, before the version is raised. Fused optimizers, batch norm's statistics and `.data` do
not raise it at all; NumPy is not seen.
"""

import sys
from contextlib import suppress
from types import CodeType
from typing import Any, NamedTuple

import torch
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from gradinspect.capture.checks.broadcasts import GROWING, BroadcastLog
from gradinspect.capture.checks.regions import Region, region_of
from gradinspect.capture.frames import user_frames
from gradinspect.capture.recorder import Recorder
from gradinspect.capture.variables import local_variables
from gradinspect.torch_api.modes import TorchDispatchMode, is_current_dispatch_mode
from gradinspect.torch_api.nodes import next_sequence_nr
from gradinspect.torch_api.operators import is_operator, operator_arguments
from gradinspect.torch_api.tensors import key_of_storage, version_of

MAX_WRITES = 500_000  # remembered; then the older ones are forgotten
Argument = tuple[int, str]  # position and name
# Their schemas do not tell that training writes the running statistics. pytorch/pytorch#13402, #120622
_STATISTICS = ("native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm")


class SeenWrite(NamedTuple):
    """One write into one storage."""

    clock: int  # the number the next node would get
    makes_node: bool  # the operator may have made a node of its own
    version: int  # before it
    op: str
    frame: int | None  # number in the recorder's table
    optimizer: str | None
    region: Region


class MutationLog(TorchDispatchMode):
    """Remembers writes while the recorder is active. Use it as a context manager."""

    supports_higher_order_operators = True

    def __init__(self, recorder: Recorder) -> None:
        """Share the recorder's frames, its thread and its pauses."""
        super().__init__()
        self.broadcasts = BroadcastLog(recorder)
        self._recorder = recorder
        self._by_storage: dict[int, list[SeenWrite]] = {}
        self._num_writes = 0
        self._arguments: dict[Any, tuple[Argument, ...]] = {}
        self._stepping: list[str] = []
        self._handles: list[Any] = []

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Let torch.compile compile as if nobody watched."""
        return True

    def __enter__(self) -> "MutationLog":
        """Begin to watch this thread, and every optimizer."""
        self._handles = [
            register_optimizer_step_pre_hook(self._before_step),
            register_optimizer_step_post_hook(self._after_step),
        ]
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        """Stop watching, unless a program that was stopped has left a mode of its own above."""
        for handle in self._handles:
            handle.remove()
        if is_current_dispatch_mode(self):
            super().__exit__(*error)

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Remember what an operator is about to write, and let it."""
        written = self._arguments.get(func)
        if written is None:
            written = self._arguments[func] = _written_arguments(func)
        if written and self._recorder.is_active and not torch.compiler.is_compiling():
            with suppress(RuntimeError, NotImplementedError, TypeError):  # no memory of the usual kind
                self._note(func, written, args, kwargs or {})
        elif func in GROWING and self._recorder.is_active and not torch.compiler.is_compiling():
            self.broadcasts.note(func, args)
        return func(*args, **(kwargs or {}))

    def since(self, key: int, sequence_nr: int, forward: CodeType | None = None) -> list[SeenWrite]:
        """List the writes into a storage since a node saved. NOTE [When a write happened].

        Args:
            key: The storage.
            sequence_nr: The node's.
            forward: Code of a custom Function's `forward`, whose node it is.
        """
        frames = self._recorder.frames
        applied = None if forward is None else self._recorder.frame_of(sequence_nr, forward)
        return [
            write
            for write in self._by_storage.get(key, ())
            if (write.clock > sequence_nr + 1 or (write.clock == sequence_nr + 1 and not write.makes_node))
            and (applied is None or not frames.is_within(write.frame, applied))
        ]

    def between(self, sequence_nr: int, versions: tuple[int, int]) -> list[SeenWrite]:
        """List the writes that took memory from one version to another since a node saved.

        For a torch that does not show the memory. Where the writes into two storages fit, nobody knows which it was.
        """
        fitting = []
        for key in self._by_storage:
            seen = [write for write in self.since(key, sequence_nr) if versions[0] <= write.version < versions[1]]
            if len({write.version for write in seen}) == versions[1] - versions[0]:
                fitting.append(seen)
        return fitting[0] if len(fitting) == 1 else []

    def _note(self, func: Any, written: tuple[Argument, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        targets = list(_tensors(written, args, kwargs))
        if not targets or (func.__name__.startswith(_STATISTICS) and not _is_training(func, args)):
            return
        clock = next_sequence_nr()
        frame = self._recorder.frames.number_of(sys._getframe(2))
        optimizer = self._stepping[-1] if self._stepping else None
        makes_node = torch.is_grad_enabled() and any(_requires_grad(value) for value in (*args, *kwargs.values()))
        op = func.__name__.partition(".")[0]
        for tensor in targets:
            write = SeenWrite(clock, makes_node, version_of(tensor), op, frame, optimizer, region_of(tensor))
            self._by_storage.setdefault(key_of_storage(tensor.untyped_storage()), []).append(write)
        self._num_writes += len(targets)
        if self._num_writes > MAX_WRITES:
            self._forget()

    def _forget(self) -> None:
        """Keep the later half of the storages."""
        keys = list(self._by_storage)
        for key in keys[: len(keys) // 2 + 1]:
            del self._by_storage[key]
        self._num_writes = sum(map(len, self._by_storage.values()))

    def _before_step(self, optimizer: Optimizer, _args: object, _kwargs: object) -> None:
        if torch.compiler.is_compiling():
            return
        try:
            name = name_of_optimizer(optimizer)
        except Exception:  # whatever the program keeps there
            name = type(optimizer).__name__
        self._stepping.append(name)

    def _after_step(self, _optimizer: Optimizer, _args: object, _kwargs: object) -> None:
        if not torch.compiler.is_compiling() and self._stepping:
            self._stepping.pop()


def _written_arguments(func: Any) -> tuple[Argument, ...]:
    """Read from an operator's schema what it writes; a higher-order operator has none."""
    if not is_operator(func):
        return ()
    arguments = list(enumerate(operator_arguments(func)))
    if func.__name__.startswith(_STATISTICS):
        return tuple((place, item.name) for place, item in arguments if item.name in ("running_mean", "running_var"))
    return tuple((place, item.name) for place, item in arguments if item.alias_info and item.alias_info.is_write)


def _tensors(written: tuple[Argument, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    for place, name in written:
        value = args[place] if place < len(args) else kwargs.get(name)
        for item in value if isinstance(value, list | tuple) else (value,):
            if isinstance(item, torch.Tensor) and item.layout is torch.strided and not item.is_inference():
                yield item


def _is_training(func: Any, args: tuple[Any, ...]) -> bool:
    place = next((place for place, item in enumerate(operator_arguments(func)) if item.name == "training"), None)
    return place is not None and place < len(args) and bool(args[place])


def _requires_grad(value: object) -> bool:
    if isinstance(value, torch.Tensor):
        return bool(value.requires_grad)
    return isinstance(value, list | tuple) and any(map(_requires_grad, value))


def name_of_optimizer(optimizer: Optimizer) -> str:
    """Find the variable that holds an optimizer, where its step is called."""
    for frame in user_frames(sys._getframe(2)):
        for space in (local_variables(frame), frame.f_globals):
            name = _name_in(space, optimizer)
            if name is not None:
                return name
    return type(optimizer).__name__


def _name_in(space: dict[str, object], optimizer: Optimizer) -> str | None:
    for name, value in list(space.items()):
        if value is optimizer:
            return name
    attributes = getattr(space.get("self"), "__dict__", {})
    return next((f"self.{name}" for name, value in list(attributes.items()) if value is optimizer), None)
