"""A thread of ours takes no signal from the program, which may block it in its own."""

import signal
import sys
from queue import SimpleQueue

import pytest

from gradinspect.own_threads import signals_blocked, start_thread

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="threads there have no signals")


def test_a_thread_blocks_signals_but_those_of_its_own_faults() -> None:
    """Else the system could give it any signal that is sent to the process."""
    masks: SimpleQueue[set[int]] = SimpleQueue()
    start_thread(lambda number: masks.put(set(signal.pthread_sigmask(signal.SIG_BLOCK, ())) | {number}), 1000)
    blocked = masks.get(timeout=60)

    assert {signal.SIGUSR1, signal.SIGTERM, signal.SIGALRM, signal.SIGINT, 1000} <= blocked
    assert not blocked & {signal.SIGSEGV, signal.SIGABRT}


def test_the_thread_that_starts_it_blocks_what_it_did() -> None:
    """Also if it cannot be started."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    try:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        with pytest.raises(RuntimeError), signals_blocked():
            raise RuntimeError

        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
        assert signal.SIGUSR1 in before
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})


def test_a_signal_can_be_left_to_it() -> None:
    """As Ctrl-C, for as long as it takes to import torch."""
    with signals_blocked(signal.SIGINT):
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())

    assert signal.SIGTERM in blocked
    assert signal.SIGINT not in blocked
