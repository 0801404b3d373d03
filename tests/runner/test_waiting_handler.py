"""A handler of the program is called where its own code runs, once, and what it raises goes on from there."""

import signal
import sys
import traceback
from collections.abc import Callable, Collection, Iterator
from time import monotonic
from types import FrameType
from typing import Any

import pytest

from gradinspect.runner import waiting_handler
from gradinspect.runner.waiting_handler import WaitingHandler

LONG_S = 20.0


class TimeIsUpError(Exception):
    """What a time limit raises."""


@pytest.fixture
def register() -> Iterator[Callable[[Any, int], None]]:
    """Register a handler, for which the function `ours` in this file is our code."""
    before = {number: signal.getsignal(number) for number in (signal.SIGUSR1, signal.SIGINT)}

    def now(handler: Any, number: int) -> None:
        signal.signal(number, WaitingHandler(handler, runs_ours))

    yield now
    for number, handler in before.items():
        signal.signal(number, handler)


def runs_ours(frame: FrameType | None) -> bool:
    """Return whether `ours` is among the frames."""
    while frame is not None and frame.f_code is not ours.__code__:
        frame = frame.f_back
    return frame is not None


def ours(number: int, times: int = 1) -> int:
    """Get a signal, and go on for a while."""
    for _ in range(times):
        signal.raise_signal(number)
    return sum(abs(one) for one in range(50))


def program(number: int, called: Collection[object] = ()) -> int:
    """Call our code, and go on until the handler has come: at once, or some time later where code is traced."""
    found = ours(number)
    until = monotonic() + LONG_S
    while not called and monotonic() < until:
        pass
    return found


def too_late(*_: object) -> None:
    """Raise."""
    raise TimeIsUpError


def test_a_handler_waits_until_our_code_has_ended(register: Any) -> None:
    """Our code gets to its end, and the handler is called once, however often the signal was sent again."""
    called: list[tuple[int, bool]] = []
    register(lambda number, frame: called.append((number, runs_ours(frame))), signal.SIGUSR1)

    assert program(signal.SIGUSR1, called) == 1225
    assert called == [(signal.SIGUSR1, False)]


def test_what_a_handler_raises_comes_out_after_our_code(register: Any) -> None:
    """It comes out once, in the program, and its traceback is the one that it has without us."""
    register(too_late, signal.SIGUSR1)
    with pytest.raises(TimeIsUpError) as found:
        program(signal.SIGUSR1)

    names = [step.name for step in traceback.extract_tb(found.value.__traceback__)]
    assert names == ["test_what_a_handler_raises_comes_out_after_our_code", "program", "too_late"]
    assert abs(ours(-1, times=0)) == 1225


@pytest.mark.parametrize("set_tracer", [sys.settrace, sys.setprofile])
def test_our_code_goes_on_where_somebody_traces_it(register: Any, set_tracer: Callable[[Any], None]) -> None:
    """Python 3.11 looks for signals again before the same instruction."""
    called: list[bool] = []
    register(lambda *_: called.append(True), signal.SIGUSR1)
    before = sys.gettrace() if set_tracer is sys.settrace else sys.getprofile()
    set_tracer(lambda *_: None)
    try:
        found = program(signal.SIGUSR1, called)
    finally:
        set_tracer(before)

    assert found == 1225
    assert called == [True]


def test_without_our_code_a_handler_is_called_at_once(register: Any) -> None:
    """In the line that the signal has interrupted."""
    register(too_late, signal.SIGUSR1)
    with pytest.raises(TimeIsUpError) as found:
        signal.raise_signal(signal.SIGUSR1)

    names = [step.name for step in traceback.extract_tb(found.value.__traceback__)]
    assert names == ["test_without_our_code_a_handler_is_called_at_once", "too_late"]


@pytest.mark.parametrize(("patience_s", "is_awaited"), [(1000.0, True), (-1.0, False)])
def test_ctrl_c_waits_for_our_code_but_not_for_long(
    register: Any, patience_s: float, is_awaited: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody sits at the keyboard."""
    monkeypatch.setattr(waiting_handler, "LONGEST_INTERRUPT_S", patience_s)
    register(signal.default_int_handler, signal.SIGINT)
    with pytest.raises(KeyboardInterrupt) as found:
        program(signal.SIGINT)

    names = [step.name for step in traceback.extract_tb(found.value.__traceback__)]
    assert ("ours" not in names) is is_awaited
