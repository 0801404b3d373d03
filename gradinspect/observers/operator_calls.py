"""Listeners that are called with each operator after it has run, and change nothing.

The modes that answer an operator, or must run before one, are modes of their own: see `TorchDispatchMode`.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from gradinspect.torch_api.modes import TorchDispatchMode
from gradinspect.torch_api.patching.interruptions import pass_on_interruption

OperatorListener: TypeAlias = Callable[[Any, tuple[Any, ...], Mapping[str, Any], Any], None]
"""Called with an operator, its arguments by place and by name, and its result."""


class OperatorCalls(TorchDispatchMode):
    """Calls listeners while it is active. Use it as a context manager."""

    def __init__(self, *listeners: OperatorListener, note: Callable[[Exception], object]) -> None:
        """Listen to nothing yet.

        Args:
            listeners: Called in this order.
            note: Called with an error of a listener; the program goes on.
        """
        super().__init__()
        self._listeners = listeners
        self._note = note

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run the operator, and call the listeners."""
        given = kwargs or {}
        result = func(*args, **given)
        for listener in self._listeners:
            try:
                listener(func, args, given, result)
            except Exception as error:  # the program must not see it
                pass_on_interruption(error)
                self._note(error)
        return result
