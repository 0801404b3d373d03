"""Notice optimizers that step after backward calls of their own, as those of a GAN do.

Each of those calls may also add to the gradients of the other one's parameters, which the next `zero_grad` discards. If
that comes only after several batches, what was added is still there, so that smaller batches give other gradients.
"""

from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from torch.optim import Optimizer

from gradinspect.torch_api.dynamo import uncompiled
from gradinspect.torch_api.hooks import optimizer_steps


class StepOrder:
    """Notes which optimizers step after which backward call. Use it as a context manager, around the program."""

    def __init__(self, note: Callable[[Exception], object]) -> None:
        """Start before the first step; `note` is called with an error of ours."""
        self._note = note
        self._stepped: set[int] = set()  # since the last backward call
        self._together: set[frozenset[int]] = set()
        self._attached = ExitStack()

    def __enter__(self) -> Self:
        """Start watching."""
        self._attached.enter_context(optimizer_steps(before=self._before_step, note=self._note))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop watching."""
        self._attached.close()

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
