"""Graphs that the program keeps although no backward goes through them."""

from collections import deque
from collections.abc import Collection, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gradinspect.checks.evidence.kept_graphs import unused_graphs
from gradinspect.checks.evidence.kept_graphs.unused_graphs import UnusedGraphs
from gradinspect.graph import Frame
from gradinspect.observers.graphs.holders import HeldGroup, Store
from gradinspect.observers.graphs.live_graph import reachable
from gradinspect.torch_api.nodes import next_sequence_nr, sequence_nr

LIVING: deque[torch.Tensor] = deque()
BACKWARD = Frame(file="train.py", line=9, code="loss.backward()")


@pytest.fixture(autouse=True)
def _only_these(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let no tensor of another test be found."""
    monkeypatch.setattr(unused_graphs, "tensors_with_graph", lambda: list(LIVING))
    yield
    LIVING.clear()


def kept_of(w: torch.Tensor) -> torch.Tensor:
    """Make an output that is to be kept."""
    LIVING.append((w * 2).exp())
    return LIVING[-1]


def begin(log: UnusedGraphs, *losses: torch.Tensor) -> None:
    """Tell the log of a call that goes through some graphs."""
    nodes = {sequence_nr(node) for loss in losses for node in reachable([loss.grad_fn])}
    log.begin(nodes, next_sequence_nr(), BACKWARD)


def held(rounds: int, *, reached: bool = True, waits: Collection[int] = (), adds: bool = True) -> list[tuple[str, int]]:
    """Keep one output in each round, and list what is kept too long in the end: its name and number of tensors."""
    w = torch.ones(2, requires_grad=True)
    kept: list[torch.Tensor] = []
    later: list[torch.Tensor] = []
    log = UnusedGraphs(Path(__file__).parent, {id(w)} if reached else ())
    for number in range(rounds):
        if adds:
            kept.append(kept_of(w))
        later.append((w * 3).sum())
        if number not in waits:
            begin(log, *later)
            later.clear()
    found = [(one.name, one.num_tensors) for one in log.look() if one.num_rounds]
    texts = list(log.findings())
    assert [(place.role, place.line) for text in texts for place in text.places if place.role == "backward"] == [
        ("backward", 9)
    ] * len(found)
    assert [one.code for one in texts] == ["GI801"] * len(found)
    assert len(kept) == rounds * adds
    return found


def test_outputs_that_are_kept_for_two_calls() -> None:
    """And what reached by then has a gradient."""
    assert [held(rounds) for rounds in (1, 2, 3)] == [[], [("kept[*]", 2)], [("kept[*]", 3)]]
    assert held(4, reached=False) == []
    assert held(4, adds=False) == []


def test_what_was_found_at_the_end_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question that is asked later finds no variable of the program any more, and takes nothing back."""
    one = Held(monkeypatch)
    assert one.after("kbb") == [(1, 1)]
    monkeypatch.setattr(unused_graphs, "HolderSearch", lambda _frame: SimpleNamespace(groups=lambda _tensors: []))
    one.log.look_at_the_end()

    assert one.log.waits() is None
    assert [holder.num_rounds for holder in one.log.look()] == [1]
    assert [finding.code for finding in one.log.findings()] == ["GI801"]


def test_what_is_replaced_each_time_is_not_kept() -> None:
    """Only what adds to earlier values grows."""
    w = torch.ones(2, requires_grad=True)
    log = UnusedGraphs(Path(__file__).parent, {id(w)})
    output = None
    for _ in range(4):
        output = kept_of(w)
        begin(log, (w * 3).sum())

    assert output is not None
    assert log.look() == []
    assert list(log.findings()) == []


class Held:
    """Outputs that one variable holds, found without a search, and a log of the calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
        """Prepare; the options are of what holds them."""
        adds = Store("train.py", 5, "kept.append(y)", adds=True)
        self.w = torch.ones(2, requires_grad=True)
        self.reached = {id(self.w)}
        self.log = UnusedGraphs(Path(__file__).parent, self.reached)
        self.others: list[HeldGroup] = []

        def groups(tensors: list[torch.Tensor]) -> list[HeldGroup]:
            return [HeldGroup(**{"name": "kept[*]", "tensors": tensors, "stored_at": (adds,), **options}), *self.others]

        monkeypatch.setattr(unused_graphs, "HolderSearch", lambda _frame: SimpleNamespace(groups=groups))

    def after(self, *events: str) -> list[tuple[int, int]]:
        """Keep an output at k, go through it at g, call backward of another at b; list what is kept too long."""
        for event in "".join(events):
            match event:
                case "k":
                    kept_of(self.w)
                case "b":
                    begin(self.log, (self.w * 3).sum())
                case "g":
                    begin(self.log, LIVING[0].sum())
                case "d":
                    LIVING.popleft()
        return [(one.num_tensors, one.num_rounds) for one in self.log.look()]


@pytest.mark.parametrize(
    ("events", "found"),
    [
        ("", []),
        ("k", []),
        ("kb", [(1, 0)]),
        ("kbb", [(1, 1)]),
        ("kbbb", [(1, 1)]),
        ("kbkb", [(2, 1)]),
        ("bkb", [(1, 0)]),
        ("bkbb", [(1, 1)]),
        ("kbg", []),  # a call went through it
        ("kbdb", []),  # it is gone
        ("kkbgb", [(1, 1)]),
        ("kbbgkb", [(1, 0)]),  # one waited for two calls, so others may as well
        ("kbbgkbb", [(1, 0)]),
        ("kbbgkbbb", [(1, 0)]),
        ("kbbgkbbbb", [(1, 1)]),
    ],
)
def test_when_an_output_is_kept_too_long(
    monkeypatch: pytest.MonkeyPatch, events: str, found: list[tuple[int, int]]
) -> None:
    """Two calls after it was made, and as many more as the program has ever waited for one."""
    assert Held(monkeypatch).after(events) == found


@pytest.mark.parametrize("options", [{"name": ""}, {"is_cut": True}, {"stored_at": ()}])
def test_only_a_named_variable_that_grows_keeps_graphs(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    """Nothing is said, nor waited for."""
    held = Held(monkeypatch, **options)

    assert held.after("kbbb") == []
    assert held.log.waits() is None
    assert list(held.log.findings()) == []


def test_what_is_said_of_kept_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once they are old, as they were when they were last looked at, with the line of the last backward."""
    held = Held(monkeypatch)
    held.after("kb")
    assert held.log.waits() == "the graphs that kept[*] holds had not gone backward"
    assert list(held.log.findings()) == []
    held.after("b")
    (found,) = held.log.findings()

    assert held.log.waits() is None
    assert [(place.role, place.line) for place in found.places] == [("stored", 5), ("backward", 9)]
    assert found.subjects == ("kept[*]",)


def test_a_program_is_waited_for_as_long_as_each_holder_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """From when it was first seen; of parameters that no backward has reached, nothing is known."""
    held = Held(monkeypatch)
    held.reached.clear()
    said = []
    for event in ("k", "b", "b", "b", "b"):
        held.after(event)
        said.append(held.log.waits() is not None)

    assert said == [False, True, True, False, False]
    assert list(held.log.findings()) == []


@pytest.mark.parametrize("goes_backward", [False, True])
def test_what_the_end_of_the_program_has_dropped_was_kept(goes_backward: bool) -> None:
    """What was found before stays when nothing is left at the end, unless a backward has gone through it."""
    w = torch.ones(2, requires_grad=True)
    kept: list[torch.Tensor] = []
    log = UnusedGraphs(Path(__file__).parent, {id(w)})
    for _ in range(4):
        kept.append(kept_of(w))
        begin(log, (w * 3).sum())
    assert [one.name for one in log.look() if one.num_rounds] == ["kept[*]"]

    if goes_backward:
        begin(log, sum(kept).sum())
    LIVING.clear()
    log.look_at_the_end()

    assert len(list(log.findings())) == (0 if goes_backward else 1)
