"""Notice optimizers that step after backward calls of their own, as those of a GAN do.

Each of those calls may also add to the gradients of the other one's parameters, which the next `zero_grad` discards. If
that comes only after several batches, what was added is still there, so that smaller batches give other gradients.
"""

from types import TracebackType
from typing import Any, Self

from torch.optim import Optimizer

from gradinspect.torch_api.dynamo import uncompiled
from gradinspect.torch_api.hooks import hook_optimizer_steps


class StepOrder:
    """Notes which optimizers step after which backward call. Use it as a context manager, around the program."""

    def __init__(self) -> None:
        """Know of none."""
        self._stepped: set[int] = set()  # since the last backward call
        self._together: set[frozenset[int]] = set()
        self._handles: list[Any] = []

    def __enter__(self) -> Self:
        """Begin to watch."""
        self._handles = hook_optimizer_steps(self._before_step, _nothing)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Watch no longer."""
        for handle in self._handles:
            handle.remove()

    def backward(self) -> None:
        """Note that a backward call begins."""
        if self._stepped:
            self._together.add(frozenset(self._stepped))
            self._stepped.clear()

    @property
    def alternates(self) -> bool:
        """Whether two optimizers never step after the same backward call."""
        self.backward()
        return any(one.isdisjoint(other) for one in self._together for other in self._together)

    @uncompiled
    def _before_step(self, optimizer: Optimizer, _args: object, _kwargs: object) -> None:
        self._stepped.add(id(optimizer))


@uncompiled
def _nothing(_optimizer: Optimizer, _args: object, _kwargs: object) -> None:
    """Wait for the next step."""
