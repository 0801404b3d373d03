"""Count the floating point operations that a program takes, operator by operator, recomputation included.

A step begins with its first node. What runs before, as the frozen first layers of a model do, belongs to it too, and it
may be none that counts.
"""

from collections.abc import Callable, Mapping
from typing import Any

from gradinspect.torch_api.devices.allocations import running_node
from gradinspect.torch_api.flops import call_flops


class FlopTally:
    """Adds them up, operator by operator: its `add` is an `OperatorListener`."""

    def __init__(self, is_counting: Callable[[], bool], is_between: Callable[[], bool]) -> None:
        """Start at zero.

        Args:
            is_counting: Whether the steps that count are still running.
            is_between: Whether no step is under way.
        """
        self._flops = 0
        self._between = 0  # since the last step
        self.operators: set[str] = set()  # of forward: "aten.mm.default"
        self._is_counting = is_counting
        self._is_between = is_between

    @property
    def flops(self) -> int:
        """How many there were."""
        self._take()
        return self._flops

    def _take(self) -> None:
        """Count what ran before a step, now that it is under way."""
        if self._between and not self._is_between():
            self._flops += self._between if self._is_counting() else 0
            self._between = 0

    def add(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> None:
        """Count an operator that has run."""
        self._take()
        flops = call_flops(func, args, kwargs, result)
        if flops and self._is_counting():
            if self._is_between():
                self._between += flops
            else:
                self._flops += flops
            if running_node() is None:
                self.operators.add(str(func))
