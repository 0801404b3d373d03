"""Let the program fork, as for the workers of a DataLoader, while we record and our code runs on any thread.

What was recording in the parent records nothing in a child. Python keeps what is registered to run after a fork for as
long as the process lives, so there is one function for all recordings, which it knows weakly.

NOTE [Forks]
A forked process has a copy of the thread that forks, and of the locks and the state of the process as all threads have
left them. So a fork waits until no other thread is in the middle of code that switches the process to our state, such
as the garbage collector or the builtins; and in the new process our locks are free. It waits for a while only: the
other thread may wait for the one that forks.
"""

import os
from collections.abc import Callable
from threading import Condition, RLock, get_ident
from typing import Any, Protocol
from weakref import WeakSet

LONGEST_S = 10.0  # that a fork waits


class Pausing(Protocol):
    """What can be told to stop."""

    def pause(self) -> None:
        """Stop for good, from anywhere."""


_locks: WeakSet[Any] = WeakSet()
_running: WeakSet[Pausing] = WeakSet()
_in_children: list[Callable[[], None]] = []


def lock_of_process() -> Any:
    """Return a lock that is free in a forked process. A thread may take it twice: a destructor may run our code."""
    lock: Any = RLock()
    _locks.add(lock)
    return lock


def pause_in_children(recorder: Pausing) -> None:
    """Pause a recording in each child that is forked while it is active."""
    _running.add(recorder)


def stop_pausing(recorder: Pausing) -> None:
    """Forget a recording that has ended."""
    _running.discard(recorder)


def call_in_children(function: Callable[[], None]) -> Callable[[], None]:
    """Call a function in each child, which forgets what other threads were doing."""
    _in_children.append(function)
    return function


class _Switched:
    """The threads that have switched the process to our state, and a fork that waits for them."""

    def __init__(self) -> None:
        self.changed = Condition()
        self.threads: dict[int, int] = {}  # how often, one inside the other
        self.forking: int | None = None

    def others(self) -> bool:
        return bool(self.threads.keys() - {get_ident()})


class InOurState:
    """Let no other thread fork meanwhile. Use it as a context manager. NOTE [Forks]."""

    __slots__ = ()

    def __enter__(self) -> None:
        """Start, when no other thread is about to fork."""
        here = get_ident()
        with _switched.changed:
            if here not in _switched.threads and _switched.forking not in (None, here):
                _switched.changed.wait_for(lambda: _switched.forking is None, LONGEST_S)
            _switched.threads[here] = _switched.threads.get(here, 0) + 1

    def __exit__(self, *_error: object) -> None:
        """End."""
        here = get_ident()
        with _switched.changed:
            _switched.threads[here] -= 1
            if not _switched.threads[here]:
                del _switched.threads[here]
                if _switched.forking is not None:  # nearly never, and what notifies calls builtins of the program
                    _switched.changed.notify_all()


def _before() -> None:
    _switched.changed.acquire()  # until the fork is over
    _switched.forking = get_ident()
    _switched.changed.wait_for(lambda: not _switched.others(), LONGEST_S)


def _after_in_parent() -> None:
    _switched.forking = None
    _switched.changed.notify_all()
    _switched.changed.release()


def _after_in_child() -> None:
    mine = _switched.threads.get(get_ident())
    _switched.__init__()  # type: ignore[misc]  # its lock may be held by threads that wait for it
    _switched.threads = {} if mine is None else {get_ident(): mine}
    for lock in tuple(_locks):
        lock._at_fork_reinit()
    for forget in _in_children:
        forget()
    for recorder in tuple(_running):
        recorder.pause()


_switched = _Switched()

if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
