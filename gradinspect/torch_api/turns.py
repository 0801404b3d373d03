"""Let the backward calls of several threads take turns while one of them is observed.

NOTE [Turns]
An observed call has hooks of ours on its nodes. Those on a leaf that threads share run in the calls of all of them, and
torch reads a node's list of hooks without a lock, so it must not grow meanwhile. What an observer notes belongs to one
call, and it reads `.grad`, which an engine that runs replaces. So an observed call waits until no other one runs, and
others wait for it. Calls may need each other, as those of threads that stand for ranks do. So nobody waits for long;
who waited in vain runs at once. What such a call must not do, to be observed or to run hooks of another call, is told
by `enter` and `is_in_another_call`.
"""

import os
from collections.abc import Callable
from functools import partial
from threading import Condition, Lock, get_ident

from gradinspect.torch_api.dynamo import uncompiled

LONGEST_S = 30.0  # that a call waits while another one is prepared, for which only our own code runs


class Turns:
    """Which threads run a backward call, and which of them is being prepared to be observed."""

    def __init__(self) -> None:
        """Start with none."""
        self.forget()

    def forget(self) -> None:
        """Forget the calls of other threads, which a forked process does not have."""
        self._changed = Condition(Lock())
        self._running: dict[int, int] = {}  # thread -> its calls, one inside the other
        self._observed: set[int] = set()  # those of them with a call that is observed
        self._waiting: set[int] = set()
        self._preparing: int | None = None

    def enter(self, patience_s: float, *, to_be_observed: bool) -> bool:
        """Begin a call of this thread, and return whether it may be observed: then no other begins before `prepared`.

        Args:
            patience_s: How long to wait for others.
            to_be_observed: Whether to wait for all others; else only for those that are observed.
        """
        thread = get_ident()
        with self._changed:
            is_alone = self._wait(partial(self._is_alone, thread, to_be_observed=to_be_observed), patience_s, thread)
            if not is_alone:
                self._wait(lambda: self._preparing in (None, thread), LONGEST_S, thread)
            elif to_be_observed:
                self._preparing = thread
                self._observed.add(thread)
            self._running[thread] = self._running.get(thread, 0) + 1
        return is_alone and to_be_observed

    def prepared(self) -> None:
        """Let others begin: the hooks of this thread's call are registered, or it will not be observed."""
        with self._changed:
            if self._preparing == get_ident():
                self._preparing = None
                self._changed.notify_all()

    def leave(self) -> None:
        """End a call of this thread."""
        thread = get_ident()
        with self._changed:
            self._preparing = None if self._preparing == thread else self._preparing
            number = self._running.pop(thread, 0) - 1
            if number > 0:
                self._running[thread] = number
            else:
                self._observed.discard(thread)
            self._changed.notify_all()

    def is_in_another_call(self, thread: int) -> bool:
        """Return whether a hook runs in the call of another thread than the one that has registered it.

        Not so on the threads of devices, which run what other threads have called.
        """
        if len(self._running) < 2:
            return False
        here = get_ident()
        return here != thread and here in self._running

    def _is_alone(self, thread: int, *, to_be_observed: bool) -> bool:
        others = self._running.keys() if to_be_observed else self._observed
        return not (others - {thread} - self._waiting)

    def _wait(self, is_over: Callable[[], bool], patience_s: float, thread: int) -> bool:
        if is_over():
            return True
        self._waiting.add(thread)  # a recording may have let it begin already, and another one makes it wait
        self._changed.notify_all()
        try:
            return self._changed.wait_for(is_over, patience_s)
        finally:
            self._waiting.discard(thread)


def of_this_call(hook: Callable[..., None]) -> Callable[..., None]:
    """Run a hook of a leaf in the call that this thread is about to make, and in no other thread's. NOTE [Turns]."""
    thread = get_ident()

    @uncompiled
    def called(*gradients: object) -> None:
        if not turns.is_in_another_call(thread):
            hook(*gradients)

    return called


turns = Turns()  # of the process: recordings in several threads observe the same leaves

if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=turns.forget)
