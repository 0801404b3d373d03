"""What the program sends into the middle of our code goes on to the program; an error of ours does not."""

import signal
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType
from typing import Any

import pytest

from gradinspect.recording.transparency.own_errors import OwnErrors


class TooLongError(Exception):
    """A time limit of the program."""


def _raise(_number: int, _frame: FrameType | None) -> None:
    raise TimeoutError


def _interrupted() -> Iterator[int]:
    signal.raise_signal(signal.SIGUSR1)
    yield 1


class _Handler:
    def __call__(self, number: int, frame: FrameType | None) -> None:
        _raise(number, frame)

    def method(self, number: int, frame: FrameType | None) -> None:
        raise TimeoutError


@pytest.fixture
def handle() -> Iterator[Callable[[Any], Any]]:
    """Set a handler for a signal."""
    before = signal.getsignal(signal.SIGUSR1)
    yield partial(signal.signal, signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize(
    "handler", [_raise, _Handler(), _Handler().method, partial(_raise)], ids=["function", "object", "method", "partial"]
)
def test_what_a_signal_handler_raises_is_not_noted(handle: Callable[[Any], Any], handler: Any) -> None:
    """Whatever kind of callable it is."""
    handle(handler)
    errors = OwnErrors()
    with pytest.raises(TimeoutError):
        errors.guard(lambda: signal.raise_signal(signal.SIGUSR1))()
    with pytest.raises(TimeoutError):
        list(errors.found(_interrupted))
    assert not errors.number


def test_the_same_error_of_ours_is_noted(handle: Callable[[Any], Any]) -> None:
    """As long as no handler has run."""
    handle(_raise)
    errors = OwnErrors()

    def fail() -> None:
        raise TimeoutError

    errors.guard(fail)()
    assert errors.number == 1


@pytest.mark.parametrize(("kind", "number"), [(TooLongError, 0), (ValueError, 1)])
def test_what_another_thread_raises_in_our_code_is_not_noted(kind: type[Exception], number: int) -> None:
    """A class of the program that comes out of a frame of ours was sent there, as by `stopit`."""
    ours: dict[str, Any] = {"__name__": "gradinspect.somewhere", "kind": kind}
    exec("def listen():\n    raise kind", ours)  # noqa: S102  # a frame of ours
    errors = OwnErrors()
    try:
        errors.guard(ours["listen"])()
    except TooLongError:
        assert kind is TooLongError
    assert errors.number == number
