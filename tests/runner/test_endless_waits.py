"""Which waits of a main thread no thread is left to end."""

import subprocess
import sys

import pytest

LOOKING = """
import _thread, os, queue, sys, threading, time
from gradinspect.runner import endless_waits
from gradinspect.runner.stopping import Stopper
main = threading.get_ident()
def look():
    time.sleep(0.5)
    first = endless_waits.endless_wait_of(main)
    time.sleep(0.2)
    print(first is not None and first == endless_waits.endless_wait_of(main), flush=True)
    {then}
    os._exit(0)
vars(endless_waits)["look"] = look = type(look)(look.__code__, {{**globals(), "__name__": "gradinspect.looking"}})
_thread.start_new_thread(look, ())
"""
FULL = "waited = queue.Queue(1)\nwaited.put(1)\nwaited.put(2)"
WAITS = {
    "a full queue": (FULL, True),
    "an empty queue": ("queue.Queue().get()", True),
    "an event": ("threading.Event().wait()", True),
    "a barrier": ("threading.Barrier(2).wait()", True),
    "an event with a limit": ("threading.Event().wait(100)", False),
    "a sleep": ("time.sleep(100)", False),
    "a lock, which may have a limit": ("lock = threading.Lock()\nlock.acquire()\nlock.acquire(timeout=100)", False),
    "a loop": ("while True: pass", False),
    "a thread that works": ("t = threading.Thread(target=time.sleep, args=(100,))\nt.start()\nt.join()", False),
    "a queue beside a daemon": (
        f"threading.Thread(target=time.sleep, args=(100,), daemon=True).start()\n{FULL}",
        False,
    ),
}


def printed_by(wait: str, then: str = "") -> str:
    """Run a program that waits, and is looked at from a thread of ours."""
    words = [sys.executable, "-c", LOOKING.format(then=then) + wait]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False).stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", WAITS)
def test_only_a_wait_that_no_thread_can_end_is_endless(name: str) -> None:
    """One without a limit of time, while no other thread of the program is left."""
    wait, is_endless = WAITS[name]

    assert printed_by(wait) == f"{is_endless}\n"


@pytest.mark.slow
def test_a_stopped_program_is_not_waited_for_forever() -> None:
    """However much time it is given: here more than the test has."""
    assert printed_by(FULL, "print(Stopper()._ends_within(1e6), flush=True)") == "True\nFalse\n"
