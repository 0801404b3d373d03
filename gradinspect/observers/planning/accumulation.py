"""Let an optimizer step once for several batches, from outside: other calls of `step` and `zero_grad` do nothing."""

import functools
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from torch import nn
from torch.optim import Optimizer

from gradinspect.torch_api.patches import Patch, patched


class Accumulation:
    """Counts the steps of each optimizer."""

    def __init__(self, num_parts: int) -> None:
        """Start with none.

        Args:
            num_parts: How many batches belong to one step.
        """
        self._num_parts = num_parts
        self._calls: dict[int, int] = defaultdict(int)  # id of an optimizer, or 0 for any of them

    def applied(self) -> AbstractContextManager[None]:
        """Return a context manager for the time of the program, whose optimizers are made later."""
        return patched(
            Patch(Optimizer, "profile_hook_step", self._stepping),
            Patch(Optimizer, "zero_grad", self._clearing),
            Patch(nn.Module, "zero_grad", self._clearing),
        )

    def _stepping(self, original: Any) -> Any:
        """Wrap what wraps the `step` of each class of optimizers, hooks included."""
        wrap: Callable[..., Any] = original.__func__ if isinstance(original, staticmethod) else original

        def wrapped(step: Callable[..., Any]) -> Callable[..., Any]:
            inner = wrap(step)

            @functools.wraps(inner)
            def step_once(self: Any, *args: Any, **kwargs: Any) -> Any:
                return inner(self, *args, **kwargs) if accumulation.is_due(self) else None

            return step_once

        accumulation = self
        return staticmethod(wrapped)

    def is_due(self, optimizer: Any) -> bool:
        """Count a step, and return whether it is the last one of its batches."""
        for key in (id(optimizer), 0):
            self._calls[key] += 1
        return not self._calls[id(optimizer)] % self._num_parts

    def _clearing(self, original: Callable[..., Any]) -> Callable[..., Any]:
        accumulation = self

        @functools.wraps(original)
        def clear_once(self: Any, *args: Any, **kwargs: Any) -> Any:
            key = id(self) if isinstance(self, Optimizer) else 0
            return original(self, *args, **kwargs) if accumulation.is_between(key) else None

        return clear_once

    def is_between(self, key: int) -> bool:
        """Return whether no batch has been added since the last step that was made."""
        return not self._calls[key] % self._num_parts
