"""Count the bytes that a plan moves to the CPU and back. On fake tensors only, where a plan offloads to no device."""

from collections.abc import Callable
from typing import Any

from gradinspect.analyses.planning.saved_code import NOWHERE
from gradinspect.torch_api.fakes import FakeTensor
from gradinspect.torch_api.modes import TorchDispatchMode
from gradinspect.torch_api.operators import copying


class MovedBytes(TorchDispatchMode):
    """Adds them up while it is active."""

    def __init__(self, is_counting: Callable[[], bool]) -> None:
        """Start at zero.

        Args:
            is_counting: Whether the steps that count are still running.
        """
        super().__init__()
        self.num_bytes = 0
        self._is_counting = is_counting

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run the operator, and count what it copies."""
        result = func(*args, **(kwargs or {}))
        if func in copying and isinstance(args[0], FakeTensor) and args[0].fake_device.type == NOWHERE:
            self.num_bytes += args[0].nbytes if self._is_counting() else 0
        return result
