"""Which calls are observed, decided from their kinds and numbers alone."""

import sys
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gradinspect.checks.evidence.call_choice import (
    MAX_GRADS_OBSERVED,
    MOST_OTHERS,
    CallChoice,
    RepeatedCalls,
    SeenParameters,
)
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


class Rests:
    """Logs that rest, and a window that lets them once some calls were watched."""

    def __init__(self, *, watched: int = 2) -> None:
        self.training = SimpleNamespace(on_mode=None, on_change=None)
        self.calls = SimpleNamespace(on_evaluation=None)
        self.num_calls = watched
        self.num_repeated = self.num_brief = self.num_trainings = 0
        self.events: list[str] = []

    def rest(self) -> bool:
        """Rest."""
        self.events.append("rest")
        return True

    def wake(self) -> None:
        """Look again."""
        self.events.append("wake")

    def may_rest(self) -> bool:
        """Let the first calls be watched, and those that must be."""
        self.num_calls -= 1
        return self.num_calls < 0 and not self.must_watch

    @property
    def must_watch(self) -> bool:
        """Whether to watch the next call."""
        self.num_brief, must = max(0, self.num_brief - 1), self.num_brief > 0
        return must

    def repeated(self) -> None:
        """Count a call."""
        self.num_repeated += 1

    def watch_briefly(self) -> None:
        """Watch the next call."""
        self.num_brief = 1

    def begin_training(self) -> bool:
        """Watch another training."""
        self.num_trainings += 1
        self.num_calls = 2
        return True


def repeated(program: Rests) -> tuple[RepeatedCalls, list[str]]:
    """Return what lets the calls of a program pass by, and when it was said that the time begins anew."""
    times: list[str] = []
    return RepeatedCalls(program, program, lambda: times.append("time")), times  # type: ignore[arg-type]  # fakes


def backward_of(loss: torch.Tensor) -> EngineCall:
    """Call backward on a loss, on one line."""
    frame = sys._getframe()
    return EngineCall(kind="backward", number=1, outputs=(loss,), frame=frame, caller=frame)


def passed(one: RepeatedCalls, losses: Sequence[float | Callable[[], object]]) -> list[bool]:
    """Call backward on one line for each loss, and what else happens in between."""
    found = []
    for number, loss in enumerate(losses, 1):
        frame = sys._getframe()
        if callable(loss):
            loss()
            continue
        outputs = (torch.tensor(loss),)
        found.append(one.passes(EngineCall(kind="backward", number=number, outputs=outputs, frame=frame, caller=frame)))
    return found


def test_calls_on_known_lines_are_counted_once_enough_was_watched() -> None:
    """The first one on a line is watched, whatever the window says; a call of autograd.grad passes only then."""
    program = Rests(watched=0)
    one, _ = repeated(program)
    (grad,) = calls("g")

    assert not one.passes(grad)
    assert passed(one, [1.0, 1.0, 1.0]) == [False, True, True]
    assert one.passes(grad)
    assert (program.num_repeated, program.events) == (2, ["rest"])


@pytest.mark.parametrize("what", ["mode", "change", "evaluation", "loss"])
def test_what_may_have_changed_wakes_the_logs(what: str) -> None:
    """A mode that was set, a change, an evaluation that begins, and a loss that is no longer finite."""
    program = Rests(watched=0)
    one, _ = repeated(program)
    events = {
        "mode": [program.training.on_mode, 1.0], "change": [program.training.on_change],
        "evaluation": [program.calls.on_evaluation], "loss": [float("inf")],
    }  # fmt: skip
    passed(one, [1.0, 1.0, *events[what]])

    assert not one.is_resting
    assert program.events == ["rest", "wake"]
    assert program.num_trainings == 0


def test_another_line_or_optimizer_is_another_training() -> None:
    """It has time of its own; an optimizer that is made again on its line is a change."""
    program = Rests(watched=0)
    one, times = repeated(program)
    passed(one, [1.0, 1.0])
    frame = sys._getframe()
    one.new_optimizer(frame)

    assert (program.num_trainings, times, one.is_resting) == (1, ["time"], False)
    for _ in range(2):
        one.new_optimizer(None)
    assert program.num_trainings == 2

    other = Rests(watched=0)
    resting, times = repeated(other)
    passed(resting, [1.0, 1.0])
    assert resting.passes(EngineCall(kind="backward", number=3, outputs=(), frame=frame, caller=frame))
    assert (other.num_trainings, times, resting.is_resting) == (1, ["time"], False)


def test_other_parameters_are_another_training() -> None:
    """Of another model that is trained on the same line; an input that requires grad is new in each call."""
    program = Rests(watched=0)
    one, times = repeated(program)
    weights = [torch.nn.Parameter(torch.ones(3)) for _ in range(2)]

    def step(weight: torch.Tensor) -> bool:
        x = torch.ones(3, requires_grad=True)
        passes = one.passes(backward_of((weight * x).sum()))
        if not passes:
            one.watched([weight, x])
        return passes

    assert [step(weights[0]) for _ in range(4)] == [False, True, True, True]
    assert (program.num_trainings, times) == (0, [])
    assert step(weights[1])
    assert (program.num_trainings, times, one.is_resting) == (1, ["time"], False)


def test_parameters_that_are_new_in_each_call_are_asked_for_a_few_times() -> None:
    """A program may copy its model for each task."""
    seen = SeenParameters()
    news = [seen.has_others([torch.nn.Parameter(torch.ones(3))]) for _ in range(MOST_OTHERS + 3)]

    assert news == [True] * (MOST_OTHERS + 1) + [False] * 2
