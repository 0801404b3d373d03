"""The signal by which other threads reach the main thread is the program's if it wants it."""

import signal
import threading

import pytest

from gradinspect.runner import stopping

SIGNAL = stopping._SIGNAL


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="this system cannot signal a thread")
@pytest.mark.parametrize("is_taken", [False, True])
def test_a_handler_of_the_program_is_not_called(is_taken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is a program ended that has put all signals back to their default, as daemons do."""
    sent: list[int] = []
    monkeypatch.setattr(stopping, "_send", lambda _thread, number: sent.append(number))

    with stopping.Stopper() as stopper:
        if is_taken:
            signal.signal(SIGNAL, signal.SIG_DFL)
        waker = threading.Thread(target=stopper._wake_main)
        waker.start()
        waker.join()

    assert sent == ([] if is_taken else [SIGNAL])
