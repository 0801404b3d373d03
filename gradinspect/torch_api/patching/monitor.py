"""Let threads wait until something has changed, also where a signal handler raises meanwhile.

NOTE [Handlers that raise]
A signal handler of the program, or ours that stops it, may raise at any place in here. So nobody waits in a
`Condition`: what is interrupted as it takes its lock again does not hold it, and the end of `with` would release that
of another thread. And what a thread has begun is ended by a function that may be repeated, and is where it was
interrupted. That stands in place, since the call of a helper may be interrupted before its first instruction.
"""

from collections.abc import Callable
from threading import Lock, RLock


class Monitor:
    """A lock, and the threads that wait for a change of what it guards."""

    def __init__(self) -> None:
        """Start without waiting threads."""
        self.lock = RLock()  # a destructor that runs our code, in the middle of it, takes the lock again
        self._waiting: list[Lock] = []  # each locked until something changes

    def when(self, holds: Callable[[], bool], act: Callable[[bool], object], patience_s: Callable[[], float]) -> bool:
        """Call a function, under the lock, as soon as a condition holds, or when there was no change for too long.

        Args:
            holds: The condition; called under the lock.
            act: It gets whether the condition holds.
            patience_s: It returns how long to wait for the next change; called under the lock.

        Returns:
            Whether the condition holds.
        """
        is_over = False
        while True:
            with self.lock:
                does_hold = holds()
                if does_hold or is_over or (seconds := patience_s()) <= 0:
                    act(does_hold)
                    self.notify()
                    return does_hold
                change = Lock()
                change.acquire()
                self._waiting.append(change)
            is_over = not change.acquire(timeout=seconds)

    def notify(self) -> None:
        """Wake all that wait, under the lock; also those that an interrupted call has already woken."""
        for waiting in self._waiting:
            if waiting.locked():
                waiting.release()
        self._waiting.clear()
