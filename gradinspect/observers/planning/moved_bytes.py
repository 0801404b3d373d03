"""Count the bytes that a plan moves to the CPU and back. On fake tensors only, where a plan offloads to no device."""

from collections.abc import Callable
from typing import Any

from gradinspect.analyses.planning.saved_code import NOWHERE
from gradinspect.torch_api.fakes import FakeTensor
from gradinspect.torch_api.operators import copying


class MovedBytes:
    """Adds them up, operator by operator: its `add` is an `OperatorListener`."""

    def __init__(self, is_counting: Callable[[], bool]) -> None:
        """Start at zero.

        Args:
            is_counting: Whether the steps that count are still running.
        """
        self.num_bytes = 0
        self._is_counting = is_counting

    def add(self, func: Any, args: tuple[Any, ...], _kwargs: object, _result: object) -> None:
        """Count what an operator has copied."""
        if func in copying and isinstance(args[0], FakeTensor) and args[0].fake_device.type == NOWHERE:
            self.num_bytes += args[0].nbytes if self._is_counting() else 0
