"""How long `check` watches a program: until what it asks about is known, within a limit of calls and seconds.

NOTE [Phases]
Backward calls on the same lines are a phase: the steps of a discriminator, those of a generator. One that was seen once
may come again. It is waited for until twice as many calls were made as before it came: a phase that alternates with
others is back by then, and a single call before the loop is not waited for.

NOTE [A clock of work]
The processor time of the thread that calls backward does not depend on what else the machine does, so that neither does
the verdict. What it waits for, such as data, is limited by the clock on the wall, without the time for which a busy
machine lets it wait.

NOTE [Cheap calls]
When all is known and nothing was found, more calls are watched until the time is over: the training that follows a
pretraining, a validation that leaves the model in eval mode, or a loss that becomes NaN come after the first steps.
When something was found, a few more are watched: a second mistake may need another step or two to be certain.

NOTE [Repeated calls]
A training repeats itself. Once enough of its calls were watched for all to be known, and nothing was found, those that
follow on the same lines are counted, and no more: they cost next to nothing, so that the work for which a program is
watched reaches further. What may be new is watched closely again: a training by another optimizer, on other lines or
of other parameters, with time of its own; a few calls where a model changes its mode or a loss is no longer finite, and
a few each time the number of calls has doubled. A training without another one behind it costs no more than if all its
calls were watched.
"""

import time
from collections.abc import Callable, Hashable, Sequence
from typing import TypeAlias

from gradinspect.runner.delays import delay_s, without_delay

LEAST_CALLS = 2  # a second iteration shows what the first one left behind
MOST_CALLS = 100
MOST_SECONDS = 10.0  # of this thread's work, after the least number of calls: NOTE [A clock of work]
MOST_WAITING = 30.0  # seconds by the clock on the wall: NOTE [A clock of work]
CHEAP_CALLS = 600
FEW_CALLS = 12  # where something was found, or something else is to be measured after them
CLOSE_CALLS = 60  # of a training, before those that repeat them are only counted: NOTE [Repeated calls]
CLOSE_SHARE = 0.25  # of the work, after which fewer of them are enough
BRIEF_CALLS = 4  # that are watched closely where something may have changed
MOST_TRAININGS = 8  # that have time of their own

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
        delayed: Callable[[], float] = delay_s,
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
            delayed: For how long the machine has let the program wait.
            cheap_calls: How many are watched although all is known; by default CHEAP_CALLS.
        """
        self._num_requested = num_calls
        self._questions = (self._open_phase, *questions)
        self._is_full = is_full
        self._has_found = has_found
        self._now = now
        self._worked = worked
        self._delayed = delayed
        self._cheap_calls = CHEAP_CALLS if cheap_calls is None else cheap_calls
        self._num_calls = 0
        self._phases: dict[Hashable, tuple[int, int]] = {}  # the number of its first call, and how many there were
        self._since: float | None = None  # when the least number of calls was reached
        self._worked_then = self._delayed_then = 0.0
        self._limit: str | None = None  # that was reached
        self._num_trainings = 1
        self._num_before = 0  # calls before the latest training that has time of its own
        self._num_close = 0  # calls of the latest training that were watched closely
        self._num_brief = 0  # of those that may come, however many were watched
        self._num_timed = 0  # calls that were watched closely since the time began to run
        self.num_repeated = 0  # calls that were only counted
        self._allowance: float | None = None  # of work, once calls are only counted
        self.is_left = False  # the program would have gone on
        self._is_cut_off = False  # more calls would have been watched if they had cost less

    def called(self, phase: Hashable) -> bool:
        """Count a backward call, and return whether the time begins to run."""
        self._num_calls += 1
        self._num_close += 1
        self._num_timed += 1
        self._num_brief = max(0, self._num_brief - 1)
        first, count = self._phases.get(phase, (self._num_calls, 0))
        self._phases[phase] = first, count + 1
        if self._num_requested is not None or self._num_calls != LEAST_CALLS:
            return False
        self._begin_to_time()
        return True

    def may_rest(self) -> bool:
        """Return whether the next calls on known lines need only be counted. NOTE [Repeated calls]."""
        if self._num_brief or self._num_close < FEW_CALLS or self._is_near_its_end:
            return False
        worked = self._worked() - self._worked_then
        if self._num_close < CLOSE_CALLS and (self._since is None or worked < MOST_SECONDS * CLOSE_SHARE):
            return False
        if self._open() is not None or self._has_found():
            return False
        if self._allowance is None:
            self._allowance = worked / max(self._num_timed, 1) * self._cheap_calls
        return True

    @property
    def _is_near_its_end(self) -> bool:
        """Whether no more calls would be watched than were already."""
        most = self._cheap_calls if self._num_requested is None else self._num_requested
        return self._num_here >= most and (self._allowance is None or self._num_requested is not None)

    def repeated(self) -> None:
        """Count a call that was not watched."""
        self._num_calls += 1
        self.num_repeated += 1
        if (self._num_calls + 1).bit_count() == 1:
            self.watch_briefly()

    @property
    def must_watch(self) -> bool:
        """Whether the next call is to be watched closely."""
        return self._num_brief > 0 or self._num_close < FEW_CALLS

    def watch_briefly(self) -> None:
        """Watch the next few calls: something may have changed."""
        self._num_brief = BRIEF_CALLS

    def begin_training(self) -> bool:
        """Watch what may be another training, and return whether it has time of its own.

        It has if the one before it was so well known that its calls were only counted.
        """
        self._num_close = 0
        if self._allowance is None or self._since is None or self._num_trainings >= MOST_TRAININGS:
            return False
        self._num_trainings += 1
        self._num_before = self._num_calls
        self._begin_to_time()
        self._allowance, self._num_timed = None, 0
        return True

    def _begin_to_time(self) -> None:
        self._since, self._worked_then, self._delayed_then = self._now(), self._worked(), self._delayed()

    def has_passed_all(self) -> bool:
        """Return whether to stop although calls are only counted."""
        if self._num_requested is not None:
            return self._num_calls >= self._num_requested
        return self.is_over()

    def is_enough(self) -> bool:
        """Return whether to stop watching."""
        if self._num_requested is not None:
            return self._num_calls >= self._num_requested
        if self._since is None:
            return False
        if self._num_here >= MOST_CALLS <= self._num_close and self._is_unknown():
            return self._end(f"{self._num_calls:,} backward calls")
        if self._is_full():
            return self._end(f"{self._num_calls:,} backward calls, which are all that can be recorded")
        return self.is_over() or (self._open() is None and not self._is_cheap() and self._end_of_cheap_calls())

    def _is_unknown(self) -> bool:
        return self._open() is not None and not self._is_cheap()

    def _end_of_cheap_calls(self) -> bool:
        self._is_cut_off = not self._has_found() and self._cheap_calls > FEW_CALLS
        return True

    def _is_cheap(self) -> bool:
        """Return whether to go on although all is known. NOTE [Cheap calls]."""
        if self._has_found():
            return self._num_here < min(FEW_CALLS, self._cheap_calls)
        return self._allowance is not None or self._num_here < self._cheap_calls

    @property
    def _num_here(self) -> int:
        """The number of calls since a training has time of its own; where a number was asked for, of all."""
        return self._num_calls - self._num_before

    def is_over(self) -> bool:
        """Return whether the time is over, whatever is known."""
        if self._since is None:
            return False
        allowance = MOST_SECONDS if self._allowance is None else min(MOST_SECONDS, self._allowance)
        if self._worked() - self._worked_then >= allowance:
            is_time = allowance == MOST_SECONDS
            return self._end(
                f"{MOST_SECONDS:.0f} seconds of work" if is_time else f"{self._num_calls:,} backward calls"
            )
        waited = self._now() - self._since
        if waited >= MOST_WAITING:  # the delay is not read before that is needed
            waited = without_delay(waited, self._delayed() - self._delayed_then)
        return waited >= MOST_WAITING and self._end(f"{MOST_WAITING:.0f} seconds")

    def timed_out(self, seconds: float) -> None:
        """Note that no second call came within some seconds."""
        self._limit = f"Not checked: what follows the first backward call. No other one came within {seconds:,.0f} s."

    def _end(self, limit: str) -> bool:
        question = self._open() if self._limit is None else None
        self._is_cut_off = not self._has_found()
        if question is not None:
            self._limit = f"Not checked: what comes after {limit}, when {question}. More steps would show it."
        return True

    @property
    def is_complete(self) -> bool:
        """Whether all was seen that a rule may wait for, as far as the program did it."""
        return self._limit is None and (self._num_requested is None or self._num_requested >= LEAST_CALLS)

    def notes(self) -> tuple[str, ...]:
        """Say which limit was reached, what was not known by then, and which calls were only counted."""
        calls = f"{self.num_repeated:,} of {self._num_calls:,} backward calls"
        lines = "on lines that had been looked at; any evaluation between them was not looked at"
        counted = f"Only counted: {calls}, {lines}."
        notes = [] if self._limit is None else [self._limit]
        if self.is_left and self._is_cut_off and self._limit is None:
            first = f"the first {self._num_calls:,} backward calls"
            notes.append(f"Not checked: what follows {first}, such as another training. --steps N watches N calls.")
        return (*notes, *((counted,) if self.num_repeated else ()))

    def _open(self) -> str | None:
        return next((reason for question in self._questions if (reason := question()) is not None), None)

    def _open_phase(self) -> str | None:
        """Wait for a phase to come again. NOTE [Phases]."""
        for first, count in self._phases.values():
            if count == 1 and self._num_calls < 2 * first:
                return f"backward call #{first} had not come again"
        return None
