"""Forks wait for code that has switched the process to our state, and it for them."""

import gc
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from interrupted import interrupted

from gradinspect.recording.transparency import collector
from gradinspect.recording.transparency.collector import collector_paused
from gradinspect.torch_api.patching import forks, monitor
from gradinspect.torch_api.patching.forks import in_our_state

LONG_S = 30.0


@pytest.fixture
def started() -> Iterator[Callable[[Callable[[], object]], threading.Thread]]:
    """Return a function that starts a thread, which has ended when the test has."""
    threads = []

    def start(run: Callable[[], object]) -> threading.Thread:
        threads.append(threading.Thread(target=run, daemon=True))
        threads[-1].start()
        return threads[-1]

    yield start
    for thread in threads:
        thread.join(LONG_S)
        assert not thread.is_alive()


def test_a_fork_waits_for_another_thread(started: Callable[..., threading.Thread]) -> None:
    """And what the other thread has switched is not yet switched back in the child."""
    has_begun, may_end, order = threading.Event(), threading.Event(), []

    def work() -> None:
        with in_our_state():
            has_begun.set()
            may_end.wait(LONG_S)
            order.append("ended")

    def fork() -> None:
        child = os.fork()
        if not child:
            os._exit(0)
        order.append("forked")
        os.waitpid(child, 0)

    started(work)
    assert has_begun.wait(LONG_S)
    forking = started(fork)
    forking.join(0.05)
    assert order == []

    may_end.set()
    forking.join(LONG_S)

    assert order == ["ended", "forked"]


def test_a_thread_forks_where_it_has_switched_the_process() -> None:
    """It waits for nobody, and its child has what it had."""
    with in_our_state():
        child = os.fork()
        if not child:
            with in_our_state():
                os._exit(7)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_an_exception_of_a_signal_handler_leaves_nothing_that_a_fork_waits_for(
    started: Callable[..., threading.Thread],
) -> None:
    """The garbage collector runs again, and other threads pass."""
    place, has_come = 0, True

    def call(_: Callable[..., Any]) -> None:
        with collector_paused():
            pass

    def others() -> None:
        with in_our_state():
            child = os.fork()
            if not child:
                os._exit(0)
            os.waitpid(child, 0)

    while has_come:
        place += 1
        has_come = interrupted(call, place, forks, collector, monitor)
        gc_is_enabled = gc.isenabled()
        gc.enable()
        assert gc_is_enabled, place
        assert threading.get_ident() not in {forks._switched.forking, *forks._switched.threads.values()}, place
        thread = started(others)
        thread.join(LONG_S)
        assert not thread.is_alive(), place

    assert place > 20
