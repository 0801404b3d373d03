"""Backward calls of several threads take turns while one is observed."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from interrupted import TimeIsUpError, interrupted

from gradinspect.torch_api.patching import monitor
from gradinspect.torch_api.patching import turns as turns_module
from gradinspect.torch_api.patching.turns import Turns

LONG_S = 30.0


@pytest.fixture
def turns() -> Iterator[Turns]:
    """Return turns in which no thread is left at the end."""
    made = Turns()
    yield made

    assert made.enter(0, to_be_observed=True)


def in_thread(run: Callable[[], None]) -> threading.Thread:
    """Start a thread."""
    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_a_call_waits_until_the_one_that_is_observed_has_ended(turns: Turns) -> None:
    """Whether it is to be observed itself or not."""
    seen: list[bool] = []

    def other() -> None:
        may_be_observed = turns.enter(LONG_S, to_be_observed=len(seen) == 0)
        turns.prepared()
        seen.append(may_be_observed)
        turns.leave(0)

    for _ in range(2):
        assert turns.enter(LONG_S, to_be_observed=True)
        turns.prepared()
        before = len(seen)
        thread = in_thread(other)
        time.sleep(0.02)

        assert len(seen) == before

        turns.leave(0)
        thread.join(LONG_S)

    assert seen == [True, False]


def test_calls_that_need_each_other_do_not_wait_for_ever(turns: Turns) -> None:
    """The second one runs unobserved, so that the first one can end."""
    has_run = threading.Event()

    def other() -> None:
        assert not turns.enter(0.01, to_be_observed=True)
        turns.prepared()
        has_run.set()
        turns.leave(0)

    assert turns.enter(LONG_S, to_be_observed=True)
    turns.prepared()
    thread = in_thread(other)

    assert has_run.wait(LONG_S)

    turns.leave(0)
    thread.join(LONG_S)


def test_no_call_begins_while_hooks_are_registered(turns: Turns) -> None:
    """Not even one without patience."""
    order = []

    def other() -> None:
        turns.enter(0, to_be_observed=False)
        order.append("other")
        turns.leave(0)

    assert turns.enter(LONG_S, to_be_observed=True)
    thread = in_thread(other)
    time.sleep(0.02)
    order.append("prepared")
    turns.prepared()
    thread.join(LONG_S)
    turns.leave(0)

    assert order == ["prepared", "other"]


def test_calls_inside_each_other_are_of_one_thread(turns: Turns) -> None:
    """Two recordings observe the same call: the second one does not wait for the first."""
    assert turns.enter(0, to_be_observed=True)
    turns.prepared()
    assert turns.enter(0, to_be_observed=True)
    turns.prepared()
    turns.leave(0)
    turns.leave(0)


def test_a_hook_of_another_call_is_told_from_that_of_a_device(turns: Turns) -> None:
    """The thread of a device has called nothing itself."""
    here = threading.get_ident()
    seen = []

    def on_device() -> None:
        seen.append(turns.is_in_another_call(here))

    def other() -> None:
        turns.enter(0, to_be_observed=False)
        seen.append(turns.is_in_another_call(here))
        in_thread(on_device).join(LONG_S)
        turns.leave(0)

    assert turns.enter(0, to_be_observed=True)
    turns.prepared()
    in_thread(other).join(LONG_S)
    in_thread(on_device).join(LONG_S)
    assert not turns.is_in_another_call(here)
    turns.leave(0)

    assert seen == [True, False, False]


def test_an_exception_of_a_signal_handler_leaves_no_call_behind() -> None:
    """It is raised after each instruction where Python runs handlers; another call, which waits meanwhile, goes on."""
    place, has_come = 0, True
    while has_come:
        turns, place = Turns(), place + 1
        has_come, other = call_interrupted_at(place, turns)
        other.join(LONG_S)

        assert not other.is_alive(), f"after {place}"
        assert turns.enter(0, to_be_observed=True)

    assert place > 20


def test_an_exception_while_a_call_waits_for_the_lock_leaves_it_to_its_holder(
    turns: Turns, time_limit: Callable[[float], object]
) -> None:
    """As it comes: in the system call of a lock, which takes it again after the handler."""

    def call() -> None:
        try:
            turns.enter(0, to_be_observed=True)
        finally:
            turns.leave(0)

    def hold() -> None:
        with turns._monitor.lock:
            is_held.set()
            time.sleep(0.1)

    is_held = threading.Event()
    holder = in_thread(hold)
    assert is_held.wait(LONG_S)
    time_limit(0.02)
    with pytest.raises(TimeIsUpError):
        call()
    holder.join(LONG_S)


@pytest.fixture
def time_limit() -> Iterator[Callable[[float], object]]:
    """Return a function that sets a time limit, after which an exception is raised in the main thread."""

    def raises(*_: object) -> None:
        raise TimeIsUpError

    before = signal.signal(signal.SIGALRM, raises)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def call_interrupted_at(place: int, turns: Turns) -> tuple[bool, threading.Thread]:
    """Make a call that an exception interrupts, and return whether it came to that, and a thread that waits."""

    def other() -> None:
        turns.enter(LONG_S * 2, to_be_observed=False)
        turns.leave(0)

    def call(trace: Callable[..., Any]) -> None:
        try:
            turns.enter(LONG_S, to_be_observed=True)
            sys.settrace(None)
            thread.start()
            while not turns._monitor._waiting:
                time.sleep(0.001)
            sys.settrace(trace)
            turns.prepared()
            turns.ran(0)
        finally:
            sys.settrace(trace)
            try:
                turns.leave(0)
            except BaseException:
                turns.leave(0)
                raise

    thread = threading.Thread(target=other)
    has_come = interrupted(call, place, turns_module, monitor)
    if thread.ident is None:
        thread.start()
    return has_come, thread


def test_calls_that_begin_and_end_do_not_let_one_wait_for_another_that_waits_for_it(turns: Turns) -> None:
    """As where a hook of an observed call joins a thread, while others train."""
    is_over, has_run = threading.Event(), threading.Event()

    def train() -> None:
        while not is_over.is_set():
            turns.enter(0.0, to_be_observed=True)
            turns.prepared()
            turns.leave(0)

    def joined() -> None:
        turns.enter(0.05, to_be_observed=True)
        turns.prepared()
        turns.leave(0)
        has_run.set()

    assert turns.enter(LONG_S, to_be_observed=True)
    turns.prepared()
    threads = [in_thread(train), in_thread(joined)]

    assert has_run.wait(LONG_S)

    turns.leave(0)
    is_over.set()
    for thread in threads:
        thread.join(LONG_S)
