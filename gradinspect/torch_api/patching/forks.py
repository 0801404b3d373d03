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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock, get_ident
from typing import Any, Protocol
from weakref import WeakSet

from gradinspect.torch_api.patching.monitor import Monitor

LONGEST_S = 10.0  # that a fork waits


class Pausing(Protocol):
    """What can be paused."""

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
    """Where threads have switched the process to our state, and a fork that waits for them."""

    def __init__(self) -> None:
        self.monitor = Monitor()
        self.threads: dict[object, int] = {}  # of each place in the code
        self.forking: int | None = None

    def begin(self, place: object) -> None:
        """Let no other thread fork, when none is about to."""
        here = get_ident()

        def may_begin() -> bool:
            return self.forking in (None, here) or here in self.threads.values()

        def begin_now(_: bool) -> None:
            self.threads[place] = here

        self.monitor.when(may_begin, begin_now, lambda: LONGEST_S)

    def end(self, place: object) -> None:
        """Let others fork. It may be repeated."""
        with self.monitor.lock:
            self.threads.pop(place, None)
            self.monitor.notify()

    def fork(self) -> None:
        """Let no other thread begin, or fork, and wait for those that have begun."""
        here = get_ident()

        def fork_now(_: bool) -> None:
            self.forking = here

        self.monitor.when(lambda: self.forking in (None, here), fork_now, lambda: LONGEST_S)
        self.monitor.when(lambda: not set(self.threads.values()) - {here}, bool, lambda: LONGEST_S)

    def forked(self) -> None:
        """Let others begin."""
        with self.monitor.lock:
            self.forking = None
            self.monitor.notify()

    def forget(self) -> None:
        """Forget other threads, which a forked process does not have."""
        here = get_ident()
        mine = {place: thread for place, thread in self.threads.items() if thread == here}
        self.__init__()  # type: ignore[misc]  # its lock may be held by threads that wait for it
        self.threads = mine


@contextmanager
def in_our_state() -> Iterator[None]:
    """Let no other thread fork meanwhile. NOTE [Forks]."""
    place = object()
    try:
        _switched.begin(place)
        yield
    finally:
        try:
            _switched.end(place)
        except BaseException:  # NOTE [Handlers that raise]
            _switched.end(place)
            raise


def _after_in_child() -> None:
    _switched.forget()
    for lock in tuple(_locks):
        lock._at_fork_reinit()
    for forget in _in_children:
        forget()
    for recorder in tuple(_running):
        recorder.pause()


_switched = _Switched()

if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(before=_switched.fork, after_in_parent=_switched.forked, after_in_child=_after_in_child)
