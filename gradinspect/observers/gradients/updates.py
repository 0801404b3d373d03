"""Measure optimizer updates: the norm of the change of each weight in a step.

NOTE [Waiting for a step]
`torch.optim` calls global hooks before and after each step. Ours are registered before a backward call, and removed
when all live optimizers that hold one of its leaves have stepped. If the program steps later, or without `torch.optim`,
we wait until its next backward call or its end, and report no updates. Only leaves of optimizers are held meanwhile,
since the program may drop its inputs. The weights are copied before the step and released after it. An optimizer may
step inside another one's step, or inside backward, one per parameter.

NOTE [Room for copies]
A program may just fit on its device, so the copies are held in the memory of the host, which is checked first. After
the step they come back in small pieces, are subtracted there, and all norms are fetched together.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from threading import get_ident
from types import FrameType

import torch
from torch.optim.optimizer import Optimizer

from gradinspect.observers.gradients.norms import Norms
from gradinspect.recording.names.instances import live_optimizers
from gradinspect.recording.values.magnitudes import (
    UNREADABLE,
    fetched,
    pending_difference,
    why_failed,
    why_unread,
)
from gradinspect.torch_api.devices.graph_capture import INSIDE, is_capturing
from gradinspect.torch_api.dynamo import uncompiled
from gradinspect.torch_api.hooks import optimizer_steps
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.forks import lock_of_process
from gradinspect.torch_api.patching.originals import ops
from gradinspect.torch_api.tensors import plain_tensors_only
from gradinspect.units import format_bytes

_open = open  # a program may replace it
PIECES = 400  # of all weights; a piece is needed up to four times at once
MIN_PIECE, MIN_PIECE_HERE = 1 << 12, 1 << 20  # elements; on the CPU, a call costs more than room


class UpdateMeter:
    """Measures the steps that change some leaves. Create it before the engine runs; close it."""

    def __init__(self, leaves: Mapping[int, torch.Tensor], on_done: Callable[[FrameType], None]) -> None:
        """Register the hooks.

        Args:
            leaves: Node number -> the leaf that the node accumulates into.
            on_done: Called when all optimizers of the leaves have stepped, after `wait`.
        """
        self.updates = Norms()
        self.weights = Norms()  # before the step
        self.problem: Exception | None = None
        self._leaves = dict(leaves)
        self._numbers = {id(leaf): number for number, leaf in self._leaves.items()}
        self._before: dict[int, dict[int, torch.Tensor]] = {}  # thread -> on the CPU, by number
        self._inside: dict[int, list[int]] = {}  # thread -> ids of the optimizers that are stepping
        self._stepped: set[int] = set()
        self._pending: set[int] | None = None  # None: not waiting
        self._on_done = on_done
        self._turn = lock_of_process()  # optimizers of several threads may step while this one is closed
        self._attached = ExitStack()
        self._attached.enter_context(
            optimizer_steps(before=self._before_step, after=self._after_step, note=self._fail, turn=self._turn)
        )

    def wait(self) -> bool:
        """Start waiting; return whether there is anything to wait for. Leaves of no optimizer are released."""
        holding = {id(one): numbers for one in live_optimizers() if (numbers := self._numbers_in(one))}
        self._pending = holding.keys() - self._stepped
        with self._turn:
            held = {number: self._leaves[number] for numbers in holding.values() for number in numbers}
            self._leaves, self._numbers = held, {id(leaf): number for number, leaf in held.items()}
        return bool(self._pending)

    def close(self) -> None:
        """Remove the hooks and release every tensor."""
        self._attached.close()
        with self._turn:
            for held in (self._leaves, self._before, self._numbers, self._inside):
                held.clear()

    def _numbers_in(self, optimizer: Optimizer) -> list[int]:
        held = (id(parameter) for group in optimizer.param_groups for parameter in group["params"])
        return [self._numbers[key] for key in held if key in self._numbers]

    @uncompiled
    def _before_step(self, optimizer: Optimizer, _args: object, _kwargs: object) -> None:
        self._inside.setdefault(get_ident(), []).append(id(optimizer))
        copies = self._before.setdefault(get_ident(), {})
        new = {number: self._leaves[number] for number in self._numbers_in(optimizer) if number not in copies}
        with plain_tensors_only():
            reason = _why_not_copied(new.values())
            for number, leaf in new.items():
                self._copy(number, leaf, reason, copies)

    def _copy(self, number: int, leaf: torch.Tensor, reason: str | None, copies: dict[int, torch.Tensor]) -> None:
        """Copy a weight before the step. NOTE [Room for copies]."""
        reason = reason or why_unread(leaf)
        if reason is None:
            try:
                with unobserved():
                    copies[number] = ops.to(ops.detach(leaf), "cpu", copy=True)
            except UNREADABLE as error:
                reason = why_failed(error, leaf)
        if reason is not None:
            self.updates.unmeasured[reason] += 1

    @uncompiled
    def _after_step(self, optimizer: Optimizer, _args: object, _kwargs: object) -> None:
        if self._measure(optimizer):
            self._on_done(sys._getframe(1))

    def _measure(self, optimizer: Optimizer) -> bool:
        """Compare the weights when the outermost step has ended; return whether all steps are done."""
        inside = self._inside.get(get_ident(), [])
        if id(optimizer) not in inside:  # it started before the backward call, which is in its closure
            return False
        del inside[inside.index(id(optimizer)) :]
        self._stepped.add(id(optimizer))
        if inside:
            return False
        with unobserved():
            self._compare(self._before.pop(get_ident(), {}))
        if self._pending is None:
            return False
        self._pending -= self._stepped
        return not self._pending

    def _compare(self, copies: Mapping[int, torch.Tensor]) -> None:
        """Take the norms of the weights before the step, and of their changes."""
        size = sum(ops.numel(before) for before in copies.values()) // PIECES
        for number, before in copies.items():
            self.weights.take(number, before)
            leaf = self._leaves[number]
            least = MIN_PIECE_HERE if leaf.is_cpu else MIN_PIECE
            try:
                self.updates.add(number, pending_difference(leaf, before, max(size, least)))
            except UNREADABLE as error:
                self.updates.unmeasured[why_failed(error, leaf)] += 1
        self.updates.settle(fetched(self.updates.pending))

    def _fail(self, error: Exception) -> None:
        """Store an error of ours, unless it is one of memory or of a device. The program must not see it."""
        self.updates.unmeasured[why_failed(error, None)] += len(self._before.pop(get_ident(), {}))
        if not isinstance(error, RuntimeError | NotImplementedError):
            self.problem = self.problem or error


def _why_not_copied(leaves: Iterable[torch.Tensor]) -> str | None:
    """Say why weights are not copied; None if they are. NOTE [Room for copies]."""
    if is_capturing():
        return INSIDE
    needed, free = sum(ops.numel(leaf) * ops.element_size(leaf) for leaf in leaves), _free_bytes()
    if free is None or needed <= free // 2:
        return None
    return f"a copy needs {format_bytes(needed)} of the {format_bytes(free)} of memory that are free"


def _free_bytes() -> int | None:
    """Return how much memory of the host is available; None where the system does not say."""
    try:
        with _open("/proc/meminfo", encoding="utf-8") as file:
            lines = file.read().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except Exception:  # the program may have replaced the function that reads files
        return None
