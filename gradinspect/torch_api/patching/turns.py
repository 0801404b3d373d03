"""Let the backward calls of several threads take turns while one of them is observed.

NOTE [Turns]
An observed call has hooks of ours on its nodes. Those on a leaf that threads share run in the calls of all of them, and
torch reads a node's list of hooks without a lock, so it must not grow meanwhile. What an observer notes belongs to one
call, and it reads `.grad`, which an engine that runs replaces. So an observed call waits until no other one runs, and
others wait for it. Calls may need each other, as those of threads that stand for ranks do. So nobody waits for long; a
call that timed out runs at once. It must not be observed, as `enter` says, and must not run hooks of another call:
`is_in_another_call`.

`leave` restores what was before `enter`, however far `enter` got: a call that stays behind would let the others
wait forever. NOTE [Handlers that raise].
"""

from collections.abc import Callable
from itertools import count
from threading import get_ident
from time import monotonic

from gradinspect.torch_api.dynamo import uncompiled
from gradinspect.torch_api.patching.forks import call_in_children
from gradinspect.torch_api.patching.monitor import Monitor

LONGEST_S = 60.0  # that a call waits in all, and while only our own code runs for another one


class Turns:
    """Which threads run a backward call, and which of them is being prepared to be observed."""

    def __init__(self) -> None:
        """Start with none."""
        self.forget()

    def forget(self) -> None:
        """Forget the calls of other threads, which a forked process does not have."""
        self._monitor = Monitor()
        self._running: dict[int, int] = {}  # thread -> its calls, one inside the other
        self._latest: dict[int, int] = {}  # thread -> the number of the last time that a call of it has begun or ended
        self._numbers = count()
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
            patience_s: How long to wait for a thread in which no call begins or ends.
            to_be_observed: Whether to wait for all others; else only for those that are observed.
        """
        thread = get_ident()

        def begin(is_alone: bool) -> None:
            if is_alone and to_be_observed:
                self._preparing = thread
                self._observed.add(thread)
            self._running[thread] = self._running.get(thread, 0) + 1
            self._latest[thread] = next(self._numbers)

        return self._when_alone(patience_s, begin, to_be_observed=to_be_observed) and to_be_observed

    @uncompiled
    def prepared(self) -> None:
        """Let others begin: the hooks of this thread's call are registered, or it will not be observed."""
        with self._monitor.lock:
            if self._preparing == get_ident():
                self._preparing = None
                self._monitor.notify()

    @uncompiled
    def ran(self, patience_s: float) -> None:
        """Let no other call begin, and wait for those that did not wait: the engine has run, and `.grad` is read."""
        thread = get_ident()

        def read(_is_alone: bool) -> None:  # at last in any case
            self._preparing = thread

        if thread in self._observed:
            self._when_alone(patience_s, read, to_be_observed=True)

    @uncompiled
    def leave(self, before: int) -> None:
        """End a call of this thread. It may be repeated.

        Args:
            before: What `number` was before `enter`.
        """
        thread = get_ident()
        with self._monitor.lock:
            self._waiting.discard(thread)
            if self._preparing == thread:
                self._preparing = None
            if before:
                self._running[thread] = before
                self._latest[thread] = next(self._numbers)
            else:
                self._running.pop(thread, None)
                self._latest.pop(thread, None)
                self._observed.discard(thread)
            self._monitor.notify()

    def is_in_another_call(self, thread: int) -> bool:
        """Return whether a hook runs in the call of another thread than the one that has registered it.

        Not so on the threads of devices, which run what other threads have called.
        """
        if len(self._running) < 2:
            return False
        here = get_ident()
        return here != thread and here in self._running

    def _others(self, thread: int, *, to_be_observed: bool) -> set[int]:
        """Return the threads that a call has to wait for."""
        others = self._running.keys() if to_be_observed else self._observed
        return others - {thread} - self._waiting

    def _when_alone(self, patience_s: float, begin: Callable[[bool], None], *, to_be_observed: bool) -> bool:
        """Wait for others, call a function while nobody else begins or ends, and return whether this thread is alone.

        It is not, if nothing begins or ends for a while in one of the others, or for too long in all.
        """
        thread, end = get_ident(), monotonic() + LONGEST_S
        seen: dict[tuple[int, int | None], float] = {}  # what others were seen at, and when first

        def is_alone() -> bool:
            return self._is_prepared(thread) and not self._others(thread, to_be_observed=to_be_observed)

        def begin_now(is_alone: bool) -> None:
            self._waiting.discard(thread)
            begin(is_alone)

        def wait_s() -> float:
            if thread not in self._waiting:  # a recording may have let it begin, and another makes it wait
                self._waiting.add(thread)
                self._monitor.notify()
            now = monotonic()
            if not self._is_prepared(thread):
                return end - now
            others = self._others(thread, to_be_observed=to_be_observed)
            since = min((seen.setdefault((other, self._latest.get(other)), now) for other in others), default=now)
            return min(since + patience_s, end) - now

        return self._monitor.when(is_alone, begin_now, wait_s)

    def _is_prepared(self, thread: int) -> bool:
        """Return whether no other call is being prepared."""
        return self._preparing in (None, thread)


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
