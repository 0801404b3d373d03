"""Forked children, such as the workers of a DataLoader: what was recording in the parent records nothing there.

Python keeps what is registered to run after a fork for as long as the process lives. So there is one function for all
recordings, and it knows them weakly.
"""

import os
from typing import Protocol
from weakref import WeakSet


class Pausing(Protocol):
    """What can be told to stop."""

    def pause(self) -> None:
        """Stop for good, from anywhere."""


_running: WeakSet[Pausing] = WeakSet()


def pause_in_children(recorder: Pausing) -> None:
    """Pause a recording in each child that is forked while it is active."""
    _running.add(recorder)


def stop_pausing(recorder: Pausing) -> None:
    """Forget a recording that has ended."""
    _running.discard(recorder)


def _pause_all() -> None:
    for recorder in tuple(_running):
        recorder.pause()


if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=_pause_all)
