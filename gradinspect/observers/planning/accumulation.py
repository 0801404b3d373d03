"""Let an optimizer step once for several batches, from outside: other calls of `step` and `zero_grad` do nothing.

NOTE [When gradients of a split batch are cleared]
An optimizer's own `zero_grad` does something while none of its batches has been added. A model's is that of the
optimizers of its parameters: of the one that steps most often, since that is the one that steps for each batch.
"""

import functools
from collections.abc import Callable, MutableMapping
from contextlib import AbstractContextManager
from typing import Any

from torch import nn
from torch.optim import Optimizer
from torch.utils.weak import WeakIdKeyDictionary

from gradinspect.recording.names.names import all_parameters
from gradinspect.torch_api.patching.patches import Patch, patched


class Accumulation:
    """Counts the steps of each optimizer."""

    def __init__(self, num_parts: int) -> None:
        """Start with none.

        Args:
            num_parts: How many batches belong to one step.
        """
        self._num_parts = num_parts
        self._calls: MutableMapping[Any, int] = WeakIdKeyDictionary()  # of each optimizer's step

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
        self._calls[optimizer] = self._calls.get(optimizer, 0) + 1
        return self._is_between(optimizer)

    def _clearing(self, original: Callable[..., Any]) -> Callable[..., Any]:
        accumulation = self

        @functools.wraps(original)
        def clear_once(self: Any, *args: Any, **kwargs: Any) -> Any:
            optimizer = self if isinstance(self, Optimizer) else accumulation.optimizer_of(self)
            return original(self, *args, **kwargs) if accumulation._is_between(optimizer) else None

        return clear_once

    def optimizer_of(self, model: nn.Module) -> Any:
        """Return the optimizer that decides for a model. NOTE [When gradients of a split batch are cleared]."""
        own = {id(parameter) for parameter in all_parameters(model)}
        of_model = [
            optimizer
            for optimizer in self._calls
            if any(id(parameter) in own for group in optimizer.param_groups for parameter in group["params"])
        ]
        return max(of_model, key=self._calls.__getitem__, default=None)

    def _is_between(self, optimizer: Any) -> bool:
        """Return whether no batch has been added since the last step that was made."""
        return optimizer is None or not self._calls.get(optimizer, 0) % self._num_parts
