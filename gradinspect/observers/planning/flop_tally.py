"""Count the floating point operations that a program takes, operator by operator, recomputation included.

An operator counts when the next one begins: what follows the memory runs around this, and has seen by then whether the
steps that count had ended before it.
"""

from collections.abc import Callable
from typing import Any

from gradinspect.torch_api.devices.allocations import running_node
from gradinspect.torch_api.flops import call_flops
from gradinspect.torch_api.modes import TorchDispatchMode


class FlopTally(TorchDispatchMode):
    """Adds them up while it is active."""

    def __init__(self, is_counting: Callable[[], bool]) -> None:
        """Start at zero.

        Args:
            is_counting: Whether the steps that count are still running.
        """
        super().__init__()
        self._flops = 0
        self._pending = 0  # of the last operator
        self.operators: set[str] = set()  # of forward: "aten.mm.default"
        self._is_counting = is_counting

    @property
    def flops(self) -> int:
        """How many there were."""
        self._take()
        return self._flops

    def _take(self) -> None:
        """Count the last operator."""
        self._flops += self._pending if self._pending and self._is_counting() else 0
        self._pending = 0

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run the operator, and count it."""
        self._take()
        result = func(*args, **(kwargs or {}))
        flops = call_flops(func, args, kwargs or {}, result)
        if flops and self._is_counting():
            self._pending = flops
            if running_node() is None:
                self.operators.add(str(func))
        return result
