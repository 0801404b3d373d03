"""How long `check` watches a program: until what it asks about is known, within a limit of calls and seconds.

NOTE [Phases]
Backward calls on the same lines are a phase: the steps of a discriminator, those of a generator. One that was seen once
may come again. It is waited for until twice as many calls were made as before it came: a phase that alternates with
others is back by then, and a single call before the loop is not waited for.

NOTE [A clock of work]
The processor time of the thread that calls backward does not depend on what else the machine does, so that neither does
the verdict. What it waits for, such as data, is limited by the clock on the wall.

NOTE [Cheap calls]
When all is known and nothing was found, more calls are watched until the time is over: the training that follows a
pretraining, a validation that leaves the model in eval mode, or a loss that becomes NaN come after the first steps.
When something was found, a few more are watched: a second mistake may need another step or two to be certain.
"""

import time
from collections.abc import Callable, Hashable, Sequence
from typing import TypeAlias

LEAST_CALLS = 2  # a second iteration shows what the first one left behind
MOST_CALLS = 100
MOST_SECONDS = 10.0  # of this thread's work, after the least number of calls: NOTE [A clock of work]
MOST_WAITING = 30.0  # seconds by the clock on the wall
CHEAP_CALLS = 600
FEW_CALLS = 12  # where something was found, or something else is to be measured after them

Question: TypeAlias = Callable[[], str | None]  # returns what is not known yet: "opt_g has not stepped twice"


class WatchWindow:
    """Decides when enough was seen."""

    def __init__(  # noqa: PLR0913  # what it asks, and the clocks that a test may set
        self,
        num_calls: int | None,
        questions: Sequence[Question] = (),
        is_full: Callable[[], bool] = lambda: False,
        has_found: Callable[[], bool] = lambda: True,
        now: Callable[[], float] = time.monotonic,
        worked: Callable[[], float] = time.thread_time,
        *,
        cheap_calls: int | None = None,
    ) -> None:
        """Start before the first call.

        Args:
            num_calls: How many calls were requested; None: until all is known.
            questions: What must be known in addition to the phases.
            is_full: Whether no more can be recorded.
            has_found: Whether something is wrong for certain.
            now: The clock on the wall, in seconds.
            worked: The processor time of this thread, in seconds. NOTE [A clock of work].
            cheap_calls: How many are watched although all is known; by default CHEAP_CALLS.
        """
        self._num_requested = num_calls
        self._questions = (self._open_phase, *questions)
        self._is_full = is_full
        self._has_found = has_found
        self._now = now
        self._worked = worked
        self._cheap_calls = CHEAP_CALLS if cheap_calls is None else cheap_calls
        self._num_calls = 0
        self._phases: dict[Hashable, tuple[int, int]] = {}  # the number of its first call, and how many there were
        self._since: float | None = None  # when the least number of calls was reached
        self._worked_then = 0.0
        self._limit: str | None = None  # that was reached

    def called(self, phase: Hashable) -> bool:
        """Count a backward call, and return whether the time begins to run."""
        self._num_calls += 1
        first, count = self._phases.get(phase, (self._num_calls, 0))
        self._phases[phase] = first, count + 1
        if self._num_requested is not None or self._num_calls != LEAST_CALLS:
            return False
        self._since, self._worked_then = self._now(), self._worked()
        return True

    def is_enough(self) -> bool:
        """Return whether to stop watching."""
        if self._num_requested is not None:
            return self._num_calls >= self._num_requested
        if self._since is None:
            return False
        if self._num_calls >= MOST_CALLS and self._open() is not None and not self._is_cheap():
            return self._end(f"{self._num_calls} backward calls")
        if self._is_full():
            return self._end(f"{self._num_calls} backward calls, which are all that can be recorded")
        return self.is_over() or (self._open() is None and not self._is_cheap())

    def _is_cheap(self) -> bool:
        """Return whether to go on although all is known. NOTE [Cheap calls]."""
        most = min(FEW_CALLS, self._cheap_calls) if self._has_found() else self._cheap_calls
        return self._num_calls < most

    def is_over(self) -> bool:
        """Return whether the time is over, whatever is known."""
        if self._since is None:
            return False
        if self._worked() - self._worked_then >= MOST_SECONDS:
            return self._end(f"{MOST_SECONDS:.0f} seconds of work")
        return self._now() - self._since >= MOST_WAITING and self._end(f"{MOST_WAITING:.0f} seconds")

    def _end(self, limit: str) -> bool:
        question = self._open() if self._limit is None else None
        if question is not None:
            self._limit = f"Not checked: what comes after {limit}, when {question}. More steps would show it."
        return True

    @property
    def is_complete(self) -> bool:
        """Whether all was seen that a rule may wait for, as far as the program did it."""
        return self._limit is None and (self._num_requested is None or self._num_requested >= LEAST_CALLS)

    def notes(self) -> tuple[str, ...]:
        """Say which limit was reached, and what was not known by then."""
        return () if self._limit is None else (self._limit,)

    def _open(self) -> str | None:
        return next((reason for question in self._questions if (reason := question()) is not None), None)

    def _open_phase(self) -> str | None:
        """Wait for a phase to come again. NOTE [Phases]."""
        for first, count in self._phases.values():
            if count == 1 and self._num_calls < 2 * first:
                return f"backward call #{first} had not come again"
        return None
