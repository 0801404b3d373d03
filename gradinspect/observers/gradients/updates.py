"""Measure optimizer updates: the norm of the change of each weight in a step.

NOTE [Waiting for a step]
`torch.optim` calls global hooks before and after each step. Ours are registered before a backward call, and removed
when all live optimizers that hold one of its leaves have stepped. If the program steps later, or without `torch.optim`,
we wait until its next backward call or its end, and report no updates. The weights are copied before the step and
released after it. An optimizer may step inside another one's step, or inside backward, one per parameter.
"""

import sys
from collections.abc import Callable, Mapping
from types import FrameType

import torch
from torch.optim.optimizer import Optimizer

from gradinspect.observers.gradients.norms import norm_of
from gradinspect.recording.instances import instances_of
from gradinspect.torch_api.dynamo import uncompiled
from gradinspect.torch_api.hooks import hook_optimizer_steps
from gradinspect.torch_api.modes import computes_by_itself, unobserved


class UpdateMeter:
    """Measures the steps that change some leaves. Create it before the engine runs; close it."""

    def __init__(self, leaves: Mapping[int, torch.Tensor], on_done: Callable[[FrameType], None]) -> None:
        """Register the hooks.

        Args:
            leaves: Node number -> the leaf that the node accumulates into.
            on_done: Called when all optimizers of the leaves have stepped, after `wait`.
        """
        self.update_norms: dict[int, float] = {}
        self.weight_norms: dict[int, float] = {}  # before the step
        self.problem: Exception | None = None
        self._leaves = dict(leaves)
        self._numbers = {id(leaf): number for number, leaf in self._leaves.items()}
        self._before: dict[int, torch.Tensor] = {}
        self._inside: list[int] = []  # ids of the optimizers that are stepping
        self._stepped: set[int] = set()
        self._pending: set[int] | None = None  # None: not waiting
        self._on_done = on_done
        self._handles = hook_optimizer_steps(self._before_step, self._after_step)

    def wait(self) -> bool:
        """Start waiting; return whether there is anything to wait for."""
        holding = {id(optimizer) for optimizer in instances_of(Optimizer) if self._numbers_in(optimizer)}
        self._pending = holding - self._stepped
        return bool(self._pending)

    def close(self) -> None:
        """Remove the hooks and release every tensor."""
        for handle in self._handles:
            handle.remove()
        self._leaves.clear()
        self._before.clear()
        self._numbers.clear()

    def _numbers_in(self, optimizer: Optimizer) -> list[int]:
        held = (id(parameter) for group in optimizer.param_groups for parameter in group["params"])
        return [self._numbers[key] for key in held if key in self._numbers]

    @uncompiled
    def _before_step(self, optimizer: Optimizer, _args: object, _kwargs: object) -> None:
        if torch.compiler.is_compiling():  # this must come first: anything before it would be traced
            return
        try:
            self._inside.append(id(optimizer))
            with unobserved():
                for number in self._numbers_in(optimizer):
                    if number not in self._before and not computes_by_itself(self._leaves[number]):
                        self._before[number] = self._leaves[number].detach().clone()
        except Exception as error:
            self._fail(error)

    @uncompiled
    def _after_step(self, optimizer: Optimizer, _args: object, _kwargs: object) -> None:
        if torch.compiler.is_compiling():
            return
        try:
            is_done = self._measure(optimizer)
        except Exception as error:
            self._fail(error)
            return
        if is_done:
            self._on_done(sys._getframe(1))

    def _measure(self, optimizer: Optimizer) -> bool:
        """Compare the weights when the outermost step has ended; return whether all steps are done."""
        if id(optimizer) not in self._inside:  # it started before the backward call, which is in its closure
            return False
        del self._inside[self._inside.index(id(optimizer)) :]
        self._stepped.add(id(optimizer))
        if self._inside:
            return False
        for number, before in self._before.items():
            update, weight = _change(before, self._leaves[number]), norm_of(before)
            if update is not None and weight is not None:
                self.update_norms[number] = update
                self.weight_norms[number] = weight
        self._before.clear()
        if self._pending is None:
            return False
        self._pending -= self._stepped
        return not self._pending

    def _fail(self, error: Exception) -> None:
        """Store an error of ours, unless it is a copy that ran out of memory. The program must not see it."""
        self._before.clear()
        if not isinstance(error, RuntimeError | NotImplementedError):
            self.problem = self.problem or error


def _change(before: torch.Tensor, leaf: torch.Tensor) -> float | None:
    try:
        with unobserved():
            return norm_of(leaf.detach() - before)
    except (RuntimeError, NotImplementedError, TypeError):
        return None
