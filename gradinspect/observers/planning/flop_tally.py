"""Count the floating point operations that a program takes, operator by operator, recomputation included."""

from collections.abc import Callable
from typing import Any

from gradinspect.torch_api.allocations import running_node
from gradinspect.torch_api.flops import call_flops
from gradinspect.torch_api.modes import TorchDispatchMode


class FlopTally(TorchDispatchMode):
    """Adds them up while it is active."""

    def __init__(self, is_counting: Callable[[], bool]) -> None:
        """Start at zero.

        Args:
            is_counting: Whether the steps that count are still running, after the operator.
        """
        super().__init__()
        self.flops = 0
        self.operators: set[str] = set()  # of forward: "aten.mm.default"
        self._is_counting = is_counting

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run the operator, and count it."""
        result = func(*args, **(kwargs or {}))
        flops = call_flops(func, args, kwargs or {}, result)
        if flops and self._is_counting():
            self.flops += flops
            if running_node() is None:
                self.operators.add(str(func))
        return result
