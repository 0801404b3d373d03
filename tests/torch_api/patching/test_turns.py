"""Backward calls of several threads take turns while one is observed."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

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
        turns.leave()

    for _ in range(2):
        assert turns.enter(LONG_S, to_be_observed=True)
        turns.prepared()
        before = len(seen)
        thread = in_thread(other)
        time.sleep(0.02)

        assert len(seen) == before

        turns.leave()
        thread.join(LONG_S)

    assert seen == [True, False]


def test_calls_that_need_each_other_do_not_wait_for_ever(turns: Turns) -> None:
    """The second one runs unobserved, so that the first one can end."""
    has_run = threading.Event()

    def other() -> None:
        assert not turns.enter(0.01, to_be_observed=True)
        turns.prepared()
        has_run.set()
        turns.leave()

    assert turns.enter(LONG_S, to_be_observed=True)
    turns.prepared()
    thread = in_thread(other)

    assert has_run.wait(LONG_S)

    turns.leave()
    thread.join(LONG_S)


def test_no_call_begins_while_hooks_are_registered(turns: Turns) -> None:
    """Not even one without patience."""
    order = []

    def other() -> None:
        turns.enter(0, to_be_observed=False)
        order.append("other")
        turns.leave()

    assert turns.enter(LONG_S, to_be_observed=True)
    thread = in_thread(other)
    time.sleep(0.02)
    order.append("prepared")
    turns.prepared()
    thread.join(LONG_S)
    turns.leave()

    assert order == ["prepared", "other"]


def test_calls_inside_each_other_are_of_one_thread(turns: Turns) -> None:
    """Two recordings observe the same call: the second one does not wait for the first."""
    assert turns.enter(0, to_be_observed=True)
    turns.prepared()
    assert turns.enter(0, to_be_observed=True)
    turns.prepared()
    turns.leave()
    turns.leave()


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
        turns.leave()

    assert turns.enter(0, to_be_observed=True)
    turns.prepared()
    in_thread(other).join(LONG_S)
    in_thread(on_device).join(LONG_S)
    assert not turns.is_in_another_call(here)
    turns.leave()

    assert seen == [True, False, False]


def test_a_signal_handler_that_raises_while_a_call_waits_leaves_others_their_lock() -> None:
    """As of a time limit: those of other threads go on, and the next call of the main thread gets its turn."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=False, timeout=120)

    assert (done.stdout, done.stderr, done.returncode) == ("True []\n", "", 0)


INTERRUPTED = """
import signal, sys, threading
from gradinspect.torch_api.patching.turns import Turns

turns, wrong, has_ended, is_waiting = Turns(), [], threading.Event(), []
sys.setswitchinterval(1e-5)

class TimeIsUp(Exception):
    pass

def handler(*_):
    if is_waiting:
        raise TimeIsUp

def work():
    while not has_ended.is_set():
        try:
            turns.enter(0.01, to_be_observed=False)
            turns.prepared()
            turns.leave()
        except BaseException as error:
            wrong.append(repr(error))
            return

threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
for thread in threads:
    thread.start()
signal.signal(signal.SIGALRM, handler)
number = 0
for _ in range(300):
    try:
        is_waiting.append(True)
        signal.setitimer(signal.ITIMER_REAL, 0.0005)
        turns.enter(0.01, to_be_observed=True)
        is_waiting.clear()
    except TimeIsUp:
        is_waiting.clear()
        number += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    turns.leave()
has_ended.set()
for thread in threads:
    thread.join(30)
print(number > 0 and not any(thread.is_alive() for thread in threads), wrong)
"""
