"""How long `check` watches, decided from the calls alone."""

import pytest

from gradinspect.checks.evidence.watch_window import (
    BRIEF_CALLS,
    CHEAP_CALLS,
    CLOSE_CALLS,
    FEW_CALLS,
    MOST_CALLS,
    MOST_SECONDS,
    MOST_TRAININGS,
    MOST_WAITING,
    WatchWindow,
)
from gradinspect.runner.delays import MOST_DELAY_S


def calls_watched(phases: str, num_calls: int | None = None) -> int | None:
    """Return after how many of some calls, one letter per phase, there were enough."""
    window = WatchWindow(num_calls, cheap_calls=0)
    for number, phase in enumerate(phases, 1):
        window.called(phase)
        if window.is_enough():
            return number
    return None


@pytest.mark.parametrize(
    ("phases", "expected"),
    [
        ("AAAA", 2),
        ("ABABAB", 4),
        ("AAABAAAB", 2),  # B has not been seen: its optimizer is waited for instead
        ("BAAAAA", 3),  # a single call before the loop
        ("ABBBB", 3),
        ("ABCABC", 6),
        ("ABCD", None),
    ],
)
def test_a_phase_is_waited_for(phases: str, expected: int | None) -> None:
    """Each phase that alternates is seen twice; a call that does not come again is not waited for."""
    assert expected == calls_watched(phases)


def test_a_number_is_taken_as_it_is() -> None:
    """With --steps neither phases nor questions nor the time matter."""
    window = WatchWindow(3, [lambda: "not yet"], now=iter(range(0, 1000, 100)).__next__)

    assert [window.called("AB"[number % 2]) or window.is_enough() for number in range(3)] == [False, False, True]
    assert window.notes() == ()
    assert not window.is_over()


def test_an_open_question_keeps_it_open_up_to_a_number_of_calls() -> None:
    """The limit is said, with the question, once."""
    window = WatchWindow(None, [lambda: "opt_g had not stepped twice"])
    enough = []
    for _ in range(MOST_CALLS):
        window.called("A")
        enough.append(window.is_enough())

    assert enough == [False] * (MOST_CALLS - 1) + [True]
    assert window.notes() == (
        "Not checked: what comes after 100 backward calls, when opt_g had not stepped twice. More steps would show it.",
    )


def test_the_time_runs_from_the_least_number_of_calls() -> None:
    """However long two calls take, they are watched; then the time ends it, also between calls."""
    seconds = [0.0]
    window = WatchWindow(None, [lambda: "it had not"], worked=lambda: seconds[0])
    window.called("A")
    seconds[0] = 1000.0
    before = window.is_over()
    window.called("A")
    seconds[0] += MOST_SECONDS

    assert (before, window.is_over(), window.is_enough()) == (False, True, True)
    assert len(window.notes()) == 1


def test_nothing_is_said_where_all_is_known() -> None:
    """A limit that is reached at the very end leaves nothing open."""
    window = WatchWindow(None, is_full=lambda: True)
    window.called("A")
    window.called("A")

    assert window.is_enough()
    assert window.notes() == ()


def test_a_few_cheap_calls_more_are_watched_while_nothing_was_found() -> None:
    """All is known after two; many more are watched, as long as they cost little."""

    def watched(has_found: bool, seconds_a_call: float) -> int:
        clock = [0.0]
        window = WatchWindow(None, has_found=lambda: has_found, now=lambda: 0.0, worked=lambda: clock[0])
        for number in range(1, 700):
            clock[0] += seconds_a_call
            window.called("A")
            if window.is_enough():
                return number
        return 0

    assert watched(has_found=False, seconds_a_call=0.01) == CHEAP_CALLS
    assert watched(has_found=False, seconds_a_call=1.0) == 12
    assert watched(has_found=True, seconds_a_call=0.01) == FEW_CALLS


@pytest.mark.parametrize(
    ("worked", "waited", "limit"),
    [(0.0, 0.0, ""), (9.9, 29.0, ""), (10.0, 12.0, "10 seconds of work"), (0.5, MOST_WAITING, "30 seconds")],
)
def test_the_time_is_that_of_its_own_work(worked: float, waited: float, limit: str) -> None:
    """What else the machine does changes no verdict, up to a limit of what a user waits for."""
    clock, work = [100.0], [7.0]
    window = WatchWindow(None, [lambda: "it had not"], now=lambda: clock[0], worked=lambda: work[0])
    begun = [window.called("A") for _ in range(3)]
    clock[0] += waited
    work[0] += worked

    assert begun == [False, True, False]
    assert (window.is_over(), window.is_enough(), window.is_complete) == (bool(limit), bool(limit), not limit)
    assert window.notes() == (
        (f"Not checked: what comes after {limit}, when it had not. More steps would show it.",) * bool(limit)
    )


def test_a_busy_machine_ends_it_no_earlier() -> None:
    """The time for which the program could have run and did not is no waiting of its own, up to a limit."""
    clock, delay = [100.0], [20.0]
    window = WatchWindow(None, now=lambda: clock[0], worked=lambda: 0.0, delayed=lambda: delay[0])
    for _ in range(2):
        window.called("A")
    clock[0], delay[0] = clock[0] + MOST_WAITING + 9, delay[0] + 10
    before = window.is_over()
    clock[0] += 1

    assert (before, window.is_over()) == (False, True)
    delay[0], clock[0] = 1000.0, 100.0 + MOST_WAITING + MOST_DELAY_S
    assert window.is_over()


@pytest.mark.parametrize(("num_calls", "is_complete"), [(None, True), (1, False), (2, True), (3, True)])
def test_one_call_shows_nothing_that_the_next_would(num_calls: int | None, *, is_complete: bool) -> None:
    """Nor is more asked for than a number of calls."""
    window = WatchWindow(num_calls, cheap_calls=0)

    assert window.is_complete == is_complete
    assert [window.called("A"), window.called("A")] == [False, num_calls is None]


def test_what_cannot_be_recorded_any_more_ends_it() -> None:
    """The number of calls is said, and what was not known."""
    window = WatchWindow(None, [lambda: None, lambda: "it had not"], is_full=lambda: True)
    enough = [(window.called("A"), window.is_enough())[1] for _ in range(2)]

    assert enough == [False, True]
    assert not window.is_complete
    assert window.notes() == (
        "Not checked: what comes after 2 backward calls, which are all that can be recorded, when it had not. More "
        "steps would show it.",
    )


def test_more_calls_than_were_asked_for_are_enough() -> None:
    """As in a step with several."""
    window = WatchWindow(2)

    assert [window.called("A") or window.is_enough() for _ in range(4)] == [False, True, True, True]


class Clock:
    """Work that each call takes, on top of what was done before."""

    def __init__(self) -> None:
        """Start at nothing."""
        self.worked = 0.0

    def window(self, num_calls: int | None = None) -> WatchWindow:
        """Watch a program whose calls raise no question and show nothing wrong."""
        return WatchWindow(num_calls, (), has_found=lambda: False, now=lambda: 0.0, worked=lambda: self.worked)

    def close(self, window: WatchWindow, count: int, phase: str = "A") -> None:
        """Make calls that are looked at, each of which takes some work."""
        for _ in range(count):
            window.called(phase)
            self.worked += 1 / 64


def test_calls_that_repeat_others_are_counted_when_enough_were_seen() -> None:
    """They are not, while something is unknown, after something was found, or where few are asked for."""
    clock = Clock()
    window = clock.window()
    clock.close(window, CLOSE_CALLS - 1)
    early = window.may_rest()
    clock.close(window, 1)

    assert (early, window.may_rest()) == (False, True)
    for changed in (
        WatchWindow(None, [lambda: "it had not"], has_found=lambda: False),
        WatchWindow(None, has_found=lambda: True),
        WatchWindow(CLOSE_CALLS, has_found=lambda: False),
    ):
        clock.close(changed, CLOSE_CALLS)
        assert not changed.may_rest()


def test_a_long_training_costs_no_more_than_if_all_of_its_calls_were_looked_at() -> None:
    """Counting ends when it has taken the work of as many calls as would have been watched."""
    clock = Clock()
    window = clock.window()
    clock.close(window, CLOSE_CALLS)
    assert window.may_rest()
    num_counted = 0
    while not window.has_passed_all():
        window.repeated()
        clock.worked += 1 / 256
        num_counted += 1

    assert clock.worked <= CHEAP_CALLS / 64
    assert num_counted > 3 * CHEAP_CALLS
    assert window.is_enough()
    calls = f"{num_counted:,} of {CLOSE_CALLS + num_counted:,} backward calls"
    counted = "on lines that had been looked at; any evaluation between them was not looked at."
    assert window.notes() == (f"Only counted: {calls}, {counted}",)
    window.is_left = True
    assert window.notes()[0].startswith(f"Not checked: what follows the first {CLOSE_CALLS + num_counted:,}")


def test_calls_are_looked_at_again_when_their_number_has_doubled() -> None:
    """A few each time, so that what comes late is seen once."""
    clock = Clock()
    window = clock.window()
    clock.close(window, CLOSE_CALLS)
    num_calls = CLOSE_CALLS
    while not window.must_watch:
        window.repeated()
        num_calls += 1

    assert num_calls == 64 - 1
    assert not window.may_rest()
    clock.close(window, BRIEF_CALLS)
    assert window.may_rest()


def test_another_training_has_time_of_its_own() -> None:
    """As many as are allowed: a loop that makes an optimizer in each round does not go on for ever."""
    clock = Clock()
    window = clock.window()
    given = []
    for _ in range(MOST_TRAININGS + 1):
        clock.close(window, CLOSE_CALLS)
        assert window.may_rest()
        window.repeated()
        given.append(window.begin_training())
        assert window.must_watch

    assert given == [True] * (MOST_TRAININGS - 1) + [False] * 2
