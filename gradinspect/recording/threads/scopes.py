"""Where a recording that began in a task of asyncio applies: in that task, and in what it starts.

Tasks take turns on one thread, so their calls reach the function modes, hooks and patches of all recordings there. A
recording that began outside of tasks applies to all that runs until it ends.
"""

import sys
from contextvars import ContextVar


class TaskScope:
    """The tasks that one recording applies to."""

    def __init__(self) -> None:
        """Apply everywhere."""
        self.is_limited = False

    def begin(self) -> None:
        """Apply to the task that is running, if one is."""
        self.is_limited = _is_in_task()
        if self.is_limited:
            _inside.set(_inside.get() | {self})

    def end(self) -> None:
        """Apply to nothing more, if it was limited."""
        if self.is_limited:
            _inside.set(_inside.get() - {self})

    def is_here(self) -> bool:
        """Return whether the recording applies to what runs now."""
        return not self.is_limited or self in _inside.get()


_inside: ContextVar[frozenset[TaskScope]] = ContextVar("inside recordings", default=frozenset())


def _is_in_task() -> bool:
    asyncio = sys.modules.get("asyncio")  # never imported by us: a program with tasks has imported it
    if asyncio is None:
        return False
    try:
        return asyncio.current_task() is not None
    except RuntimeError:  # no loop is running
        return False
