"""A program's timers and signal handlers do not interrupt our own code, and run afterwards."""

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from runs import gradinspect

from gradinspect.runner.signals import ProgramSignals, held_signals
from gradinspect.runner.waiting_handler import WaitingHandler

needs_timers = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")


@pytest.fixture
def caught() -> Any:
    """What a handler of SIGUSR1 has caught."""
    numbers: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: numbers.append(number))
    yield numbers
    signal.signal(signal.SIGUSR1, before)


def too_late(*_: object) -> None:
    """Raise."""
    raise TimeoutError


def test_a_signal_waits(caught: list[int]) -> None:
    """Two signals of a kind count as one, as in the system."""
    with held_signals(), held_signals():
        signal.raise_signal(signal.SIGUSR1)
        signal.raise_signal(signal.SIGUSR1)

        assert caught == []

    assert caught == [signal.SIGUSR1]
    signal.raise_signal(signal.SIGUSR1)
    assert caught == [signal.SIGUSR1] * 2


def test_a_signal_that_still_waits_is_not_complained_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its handler goes with the program, as that of a loader's workers: Python writes of one that finds none."""
    complaints: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)
    before = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    ours = ProgramSignals()
    try:
        signal.signal(signal.SIGCHLD, WaitingHandler(lambda *_: None, lambda _: not is_over))
        is_over = False
        signal.raise_signal(signal.SIGCHLD)
        ours.restore()
        is_over = True
        assert signal.getsignal(signal.SIGCHLD) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGCHLD, before)

    assert complaints == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_a_signal_that_still_waits_is_handed_on(number: int) -> None:
    """It came while the program ran: its handler is called once, when the program has its own again."""
    called: list[int] = []
    is_over = False
    ours = ProgramSignals()
    before = signal.signal(number, WaitingHandler(lambda number, _: called.append(number), lambda _: not is_over))
    try:
        signal.raise_signal(number)
        ours.restore()
        is_over = True
        assert called == []

        ours.hand_back()
        assert called == [number]
    finally:
        signal.signal(number, before)


@pytest.mark.skipif(not hasattr(signal, "SIGUSR2"), reason="Windows has few signals")
def test_what_handlers_raise_after_the_program_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """But not an exit, as there is nothing left to end; and one that raises does not keep the others from theirs."""
    called: list[int] = []

    def exits(number: int, _frame: object) -> None:
        called.append(number)
        sys.exit(1)

    def fails(number: int, _frame: object) -> None:
        called.append(number)
        raise TimeoutError("too late")

    before = {number: signal.getsignal(number) for number in (signal.SIGUSR1, signal.SIGUSR2)}
    try:
        for handler in (fails, exits):
            ours = ProgramSignals()
            for number in before:
                signal.signal(number, handler)
            ours.restore()
            for number in before:
                signal.raise_signal(number)
            ours.hand_back()
    finally:
        for number, theirs in before.items():
            signal.signal(number, theirs)

    assert called == [*before] * 2
    printed = capsys.readouterr().err
    assert printed.endswith("TimeoutError: too late\n")
    assert "SystemExit" not in printed
    assert printed.count("File ") == len(before)


@needs_timers
def test_a_timer_stands_still() -> None:
    """It has the same time left afterwards, and does not fire while held."""
    signal.setitimer(signal.ITIMER_REAL, 1000, 7)
    try:
        with held_signals():
            assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)

        seconds, interval = signal.getitimer(signal.ITIMER_REAL)
        assert (seconds > 900, interval) == (True, 7)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


@needs_timers
@pytest.mark.parametrize(("name", "fires"), [("ITIMER_VIRTUAL", "SIGVTALRM"), ("ITIMER_PROF", "SIGPROF")])
def test_a_timer_of_processor_time_fires_however_often_it_is_held(name: str, fires: str) -> None:
    """NOTE [Timers of processor time]: each pause added a tick of the kernel's clock. One that ends fires once."""
    timer, number = getattr(signal, name), getattr(signal, fires)
    fired: list[int] = []
    before = signal.signal(number, lambda *_: fired.append(number))
    try:
        for interval in (0.01, 0):
            fired.clear()
            signal.setitimer(timer, 0.01, interval)
            for _ in range(20_000):
                with held_signals():
                    pass
                if len(fired) > 1:
                    break

            assert len(fired) == (2 if interval else 1)
            assert interval or signal.getitimer(timer) == (0, 0)
    finally:
        signal.setitimer(timer, 0)
        signal.signal(number, before)


@needs_timers
def test_a_program_that_we_have_stopped_has_no_timers_left() -> None:
    """Python gives up its handlers while it ends, and the next tick would end the process by its signal."""
    signal.setitimer(signal.ITIMER_REAL, 1000, 7)
    try:
        home = ProgramSignals()
        home.restore(was_stopped=True)
        home.hand_back()

        assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def test_an_error_of_a_handler_comes_out(caught: list[int]) -> None:
    """Where the program's own code continues."""
    signal.signal(signal.SIGUSR1, too_late)
    with pytest.raises(TimeoutError), held_signals():
        signal.raise_signal(signal.SIGUSR1)


def test_after_the_program_ctrl_c_means_us(caught: list[int]) -> None:
    """A handler that the program has set is not called while we print, and is restored."""

    def theirs(*_: object) -> None:
        raise AssertionError

    home = ProgramSignals()
    ours = signal.signal(signal.SIGINT, theirs)
    try:
        home.restore()

        assert signal.getsignal(signal.SIGINT) == ours

        signal.raise_signal(signal.SIGUSR1)
        home.hand_back()

        assert signal.getsignal(signal.SIGINT) == theirs
        assert caught == [signal.SIGUSR1]
    finally:
        signal.signal(signal.SIGINT, ours)


def test_a_handler_that_raises_does_not_keep_another_from_its_signal(caught: list[int]) -> None:
    """Python calls it, too."""

    def hold_both() -> None:
        with held_signals():
            signal.raise_signal(signal.SIGUSR2)
            signal.raise_signal(signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR2, too_late)
    try:
        with pytest.raises(TimeoutError):
            hold_both()
    finally:
        signal.signal(signal.SIGUSR2, before)

    assert caught == [signal.SIGUSR1]


def test_another_thread_holds_nothing(caught: list[int]) -> None:
    """Handlers run in the main thread only, and only there can they be set."""
    thread = threading.Thread(target=held_signals().__enter__)
    thread.start()
    thread.join()
    signal.raise_signal(signal.SIGUSR1)

    assert caught == [signal.SIGUSR1]


HANDLERS = {
    "an alarm without a handler": "signal.setitimer(signal.ITIMER_REAL, 4)\n",
    "a handler that exits": "signal.signal(signal.SIGUSR1, lambda *_: os._exit(44))\n",
    "children that nobody waits for": "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n",
}


@pytest.mark.slow
@needs_timers
@pytest.mark.parametrize("handler", HANDLERS.values(), ids=HANDLERS)
def test_a_signal_during_the_report(handler: str, tmp_path: Path) -> None:
    """It neither ends the report nor is lost: a picture is drawn while the time is up and the signal comes."""
    engine = tmp_path / "dot"
    engine.write_text("#!/bin/sh\nkill -USR1 $PPID\nsleep 5\necho '<svg/>'\n")
    engine.chmod(0o755)
    (tmp_path / "script.py").write_text(
        "import os, signal, torch\n(torch.ones(2, requires_grad=True) * 2).sum().backward()\n"
        f"signal.signal(signal.SIGUSR1, lambda *_: print('told'))\n{handler}"
    )
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = gradinspect("export", "script.py", "--continue", "-o", "graph.svg", cwd=tmp_path, PATH=path)

    assert (done.returncode, done.stderr) == (0 if "44" not in handler else 44, "Wrote graph.svg\n")
    assert (done.stdout == "told\n") == ("44" not in handler)
