"""Let the backward calls of several threads take turns while one of them is observed.

NOTE [Turns]
An observed call has hooks of ours on its nodes. Those on a leaf that threads share run in the calls of all of them, and
torch reads a node's list of hooks without a lock, so it must not grow meanwhile. What an observer notes belongs to one
call, and it reads `.grad`, which an engine that runs replaces. So an observed call waits until no other one runs, and
others wait for it. Calls may need each other, as those of threads that stand for ranks do. So nobody waits for long;
who waited in vain runs at once. What such a call must not do, to be observed or to run hooks of another call, is told
by `enter` and `is_in_another_call`.

A signal handler of the program, or ours that stops it, may raise at any place in here. So nobody waits in a
`Condition`: what is interrupted as it takes its lock again does not hold it, and the end of `with` would release that
of another thread. And `leave` brings back what was before `enter`, however far that has come, and may be repeated: a
call that stays behind would let the others wait for ever.
"""

from collections.abc import Callable
from threading import Lock, get_ident
from time import monotonic

from gradinspect.torch_api.dynamo import uncompiled
from gradinspect.torch_api.patching.forks import call_in_children

LONGEST_S = 60.0  # that a call waits in all, and while only our own code runs for another one


class Turns:
    """Which threads run a backward call, and which of them is being prepared to be observed."""

    def __init__(self) -> None:
        """Start with none."""
        self.forget()

    def forget(self) -> None:
        """Forget the calls of other threads, which a forked process does not have."""
        self._lock = Lock()
        self._waiters: list[Lock] = []  # each held until something changes
        self._running: dict[int, int] = {}  # thread -> its calls, one inside the other
        self._observed: set[int] = set()  # those of them with a call that is observed
        self._waiting: set[int] = set()
        self._preparing: int | None = None

    def number(self) -> int:
        """Return how many calls this thread is in."""
        return self._running.get(get_ident(), 0)

    @uncompiled
    def enter(self, patience_s: float, *, to_be_observed: bool) -> bool:
        """Start a call of this thread, and return whether it may be observed: then no other begins before `prepared`.

        Args:
            patience_s: How long to wait while others run and none of them begins or ends.
            to_be_observed: Whether to wait for all others; else only for those that are observed.
        """
        thread = get_ident()

        def begin(*, is_alone: bool) -> None:
            if is_alone and to_be_observed:
                self._preparing = thread
                self._observed.add(thread)
            self._running[thread] = self._running.get(thread, 0) + 1

        return self._when_alone(patience_s, begin, to_be_observed=to_be_observed) and to_be_observed

    @uncompiled
    def prepared(self) -> None:
        """Let others begin: the hooks of this thread's call are registered, or it will not be observed."""
        with self._lock:
            if self._preparing == get_ident():
                self._preparing = None
                self._tell()

    @uncompiled
    def ran(self, patience_s: float) -> None:
        """Let no other call begin, and wait for those that did not wait: the engine has run, and `.grad` is read."""
        thread = get_ident()

        def read(*, is_alone: bool) -> None:  # noqa: ARG001  # at last in any case
            self._preparing = thread

        if thread in self._observed:
            self._when_alone(patience_s, read, to_be_observed=True)

    @uncompiled
    def leave(self, before: int) -> None:
        """End a call of this thread.

        Args:
            before: What `number` was before `enter`.
        """
        try:
            self._end(before)
        except BaseException:  # sent by a signal handler
            self._end(before)
            raise

    def is_in_another_call(self, thread: int) -> bool:
        """Return whether a hook runs in the call of another thread than the one that has registered it.

        Not so on the threads of devices, which run what other threads have called.
        """
        if len(self._running) < 2:
            return False
        here = get_ident()
        return here != thread and here in self._running

    def _end(self, before: int) -> None:
        """Keep only the calls that this thread was in before."""
        thread = get_ident()
        with self._lock:
            self._waiting.discard(thread)
            if self._preparing == thread:
                self._preparing = None
            if before:
                self._running[thread] = before
            else:
                self._running.pop(thread, None)
                self._observed.discard(thread)
            self._tell()

    def _others(self, thread: int, *, to_be_observed: bool) -> set[int]:
        """Return the threads that a call has to wait for."""
        others = self._running.keys() if to_be_observed else self._observed
        return others - {thread} - self._waiting

    def _when_alone(self, patience_s: float, begin: Callable[..., None], *, to_be_observed: bool) -> bool:
        """Wait for others, call a function while nobody else begins or ends, and return whether this thread is alone.

        It is not, if none of the others begins or ends for a while, or for too long in all.
        """
        thread, end, left = get_ident(), monotonic() + LONGEST_S, LONGEST_S
        try:
            while True:
                with self._lock:
                    is_prepared = self._preparing in (None, thread)
                    is_alone = is_prepared and not self._others(thread, to_be_observed=to_be_observed)
                    if is_alone or left <= 0:
                        begin(is_alone=is_alone)
                        self._tell()
                        return is_alone
                    if thread not in self._waiting:  # a recording may have let it begin, and another makes it wait
                        self._waiting.add(thread)
                        self._tell()
                    change = self._change()
                limit = min(patience_s, left) if is_prepared else left
                left = end - monotonic() if change.acquire(timeout=limit) else 0.0
        finally:
            with self._lock:
                self._waiting.discard(thread)

    def _change(self) -> Lock:
        """Return a lock that cannot be taken until something changes."""
        change = Lock()
        change.acquire()
        self._waiters.append(change)
        return change

    def _tell(self) -> None:
        """Let all see what has changed; also those that an interrupted call has already told."""
        for waiter in self._waiters:
            if waiter.locked():
                waiter.release()
        self._waiters.clear()


def of_this_call(hook: Callable[..., None]) -> Callable[..., None]:
    """Run a hook of a leaf in the call that this thread is about to make, and in no other thread's. NOTE [Turns]."""
    thread = get_ident()

    @uncompiled
    def called(*gradients: object) -> None:
        if not turns.is_in_another_call(thread):
            hook(*gradients)

    return called


turns = Turns()  # of the process: recordings in several threads observe the same leaves
call_in_children(turns.forget)
