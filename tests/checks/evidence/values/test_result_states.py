"""Which results were not finite, of calls that a loss was computed from."""

import pytest
import torch

from gradinspect.checks.evidence.values import result_states
from gradinspect.checks.evidence.values.result_states import ResultStates, SizeLimit
from gradinspect.checks.facts.graphs import FirstNonfinite
from gradinspect.checks.facts.value_flow import OUTSIDE, Call, Read
from gradinspect.graph import Frame
from gradinspect.recording.transparency.own_errors import OwnErrors

INF, NAN = float("inf"), float("nan")


def first(*made: tuple[str, list[float], tuple[int, ...]]) -> FirstNonfinite | None:
    """Return the first of some calls, of which each has a name, a result and the calls that it reads."""
    states, calls = ResultStates(), list[Call]()
    results = [torch.tensor(values) for _, values, _ in made]
    for place, (name, _, reads) in enumerate(made):
        calls.append(Call(name, tuple(map(Read, reads)), place))
        states.look(place, name, [results[read] for read in reads if read != OUTSIDE], results[place])
    return states.first(calls, Read(len(calls) - 1), lambda number: Frame(file="f.py", line=number or 0, code=""))


def lines(found: FirstNonfinite | None) -> tuple[str, bool, int, int | None] | None:
    """Return the lines of what was found."""
    if found is None or found.made is None:
        return None
    return found.op, found.is_nan, found.made.line, None if found.masked is None else found.masked.line


def test_the_first_nan_is_named() -> None:
    """Or the infinity that it was made of, wherever it went later; not what the loss does not contain."""
    made = (
        ("torch.sqrt", [NAN, 1.0], ()),
        ("torch.log", [-INF, 2.0], ()),
        ("torch.Tensor.mul", [NAN, 0.0], (1,)),
        ("torch.sum", [NAN], (2,)),
    )

    assert lines(first(*made)) == ("log", False, 1, None)


def test_a_product_with_0_that_does_not_remove_a_nan_is_named() -> None:
    """Data with gaps, and a mask."""
    made = (
        ("torch.tensor", [NAN, 1.0], ()),
        ("torch.Tensor.gt", [0.0, 1.0], ()),
        ("torch.nn.functional.huber_loss", [NAN, 2.0], (0,)),
        ("torch.Tensor.mul", [NAN, 2.0], (2, 1)),
    )

    assert lines(first(*made)) == ("tensor", True, 0, 3)


def test_calls_on_one_line_are_counted() -> None:
    """Those of the same function that the loss was computed from."""
    states, calls = ResultStates(), list[Call]()
    made = (("log", 1.0, ()), ("log", INF, ()), ("exp", 1.0, ()), ("log", 1.0, ()), ("mul", INF, (0, 1, 2)))
    for place, (name, value, reads) in enumerate(made):
        calls.append(Call(f"torch.{name}", tuple(map(Read, reads)), 0 if name == "log" else place))
        states.look(place, name, [], torch.tensor([value]))
    found = states.first(calls, Read(4), lambda number: Frame(file="f.py", line=number or 0, code=""))

    assert found is not None
    assert (found.op, found.number, found.num_alike) == ("log", 2, 2)


def test_infinities_on_purpose_are_none() -> None:
    """Those of a mask; nor is memory that nothing was written to."""
    assert first(("torch.Tensor.masked_fill", [-INF, 1.0], ()), ("torch.exp", [0.0, 2.0], (0,))) is None
    assert first(("torch.empty", [NAN], ()), ("torch.zeros", [0.0], (0,))) is None
    assert lines(first(("torch.exp", [INF], ()), ("torch.mean", [INF], (0,)))) == ("exp", False, 0, None)


def test_the_first_is_not_known_behind_what_was_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mean of many values that are NaN already has not made it."""
    monkeypatch.setattr(result_states, "MOST_ELEMENTS", 2)
    made = ("torch.exp", [1.0, NAN, 1.0], ()), ("torch.mean", [NAN], (0,)), ("torch.log", [NAN], (1,))

    assert first(*made) is None
    for few in ([1.0, 1.0], []):
        assert lines(first(("torch.exp", few, ()), *made[1:])) == ("mean", True, 1, None)


def test_only_so_much_is_looked_at() -> None:
    """A number of results, each up to a size, as many with a graph as without."""
    states = ResultStates()
    for place in range(result_states.MOST_LOOKED + 1):
        states.look(place, "torch.log", [], torch.tensor([NAN]))
    states.look(-1, "torch.log", [], torch.tensor([NAN], requires_grad=True))
    states.look(-2, "torch.log", [], torch.full((result_states.MOST_ELEMENTS + 1,), NAN, requires_grad=True))
    states.look(-3, "torch.nn.functional.rnn", [], (torch.tensor([NAN], requires_grad=True), None))

    assert states.nans == {*range(result_states.MOST_LOOKED), -1, -3}


def test_what_is_too_large_is_counted_once_for_each_line() -> None:
    """What cannot be read anyway is not: no larger limit would show it."""
    errors = OwnErrors()
    limit = SizeLimit(errors, "target of a loss", 4)
    allowed = [limit.allows(torch.ones(count), line) for count, line in ((4, 1), (5, 1), (6, 1), (5, 2))]
    unreadable = limit.allows(torch.ones(5, device="meta"), 3)

    assert (allowed, unreadable) == ([True, False, False, False], False)
    assert list(errors.notes()) == ["Not checked: 2 targets of a loss, larger than 4 elements."]
