"""Which calls are observed, decided from their kinds and numbers alone."""

import sys
from typing import Any

import pytest

from gradinspect.checks.evidence.call_choice import MAX_GRADS_OBSERVED, CallChoice
from gradinspect.request import Request
from gradinspect.runner.engine import EngineCall
from gradinspect.source import Module


def choice(**asked: Any) -> CallChoice:
    """Choose the calls of a request."""
    return CallChoice(Request(source=Module("train"), label="train.py", **asked))


def calls(kinds: str) -> list[EngineCall]:
    """Make calls: b is a backward, g an autograd.grad; each kind has numbers of its own."""
    frame = sys._getframe()
    return [
        EngineCall(
            kind="backward" if kind == "b" else "grad", number=kinds[: place + 1].count(kind), outputs=(), frame=frame,
            caller=frame,
        )
        for place, kind in enumerate(kinds)
    ]  # fmt: skip


def wanted(kinds: str, **asked: Any) -> str:
    """Return which of some calls are observed, with a dot in place of the others."""
    chooser = choice(**asked)
    return "".join(call.kind[0] if chooser.wants(call) else "." for call in calls(kinds))


@pytest.mark.parametrize(
    ("asked", "seen"),
    [
        ({}, "gbgbbg"),
        ({"backward": 1}, "gbgbbg"),
        ({"backward": 2}, "..gbbg"),  # what comes before it belongs to it
        ({"backward": 3}, "....bg"),
        ({"grad": 1}, "g.g..g"),
        ({"grad": 2}, "..g..g"),
    ],
)
def test_calls_are_observed_from_the_requested_one_on(asked: dict[str, int], seen: str) -> None:
    """The autograd.grad() calls before a backward belong to it."""
    assert wanted("gbgbbg", **asked) == seen


def test_only_the_first_of_many_in_a_row_are_observed() -> None:
    """Sixteen; they are counted again after each backward, unless they are what is asked for."""
    row, seen = "g" * 18, "g" * 16 + ".."

    assert wanted(f"{row}b{row}") == f"{seen}b{seen}"
    assert wanted(row, grad=1) == row


@pytest.mark.parametrize("asked", [{}, {"grad": 1}])
def test_a_program_that_makes_no_backward_is_left(asked: dict[str, int]) -> None:
    """After 256 calls, if they are not what is asked for; the verdict says so."""
    chooser = choice(**asked)
    exhausted = []
    for call in calls("g" * 257):
        chooser.wants(call)
        exhausted.append(chooser.is_exhausted(lambda: False))

    assert exhausted.count(False) == (257 if asked else 255)
    given_up = ["Not checked: what comes after 257 autograd.grad() calls in a row."]
    assert list(chooser.notes()) == ([] if asked else given_up)


def test_an_evaluation_before_the_first_step_may_take_longer() -> None:
    """Such a program makes more calls, and then trains."""
    chooser = choice()
    exhausted = []
    for call in calls("g" * 5_000):
        chooser.wants(call)
        exhausted.append(chooser.is_exhausted(lambda: True))

    assert exhausted.index(True) == 4_999


def test_the_requested_kind_is_counted() -> None:
    """Backward calls, or those of autograd.grad."""
    backward, grad = calls("bg")

    assert [choice().counts(call) for call in (backward, grad)] == [True, False]
    assert [choice(grad=1).counts(call) for call in (backward, grad)] == [False, True]


def test_calls_that_are_too_many_before_a_backward_call_are_counted() -> None:
    """The verdict names them, and is not complete."""
    few, many = choice(), choice()
    for chooser, kinds in ((few, "g" * MAX_GRADS_OBSERVED + "b"), (many, "g" * (MAX_GRADS_OBSERVED + 2) + "bg")):
        for call in calls(kinds):
            chooser.wants(call)

    assert (few.saw_all, list(few.notes())) == (True, [])
    assert (many.saw_all, list(many.notes())) == (
        False, ["Not checked: 2 calls of autograd.grad(), after 16 in a row."]
    )  # fmt: skip
