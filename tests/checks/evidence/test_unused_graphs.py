"""Graphs that the program keeps although no backward goes through them."""

from collections import deque
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest
import torch

from gradinspect.checks.evidence import unused_graphs
from gradinspect.checks.evidence.unused_graphs import UnusedGraphs
from gradinspect.graph import Frame
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


def test_a_graph_that_waited_gives_others_as_long() -> None:
    """A call that went through what was made before the last two calls shows that the program works so."""
    w = torch.ones(2, requires_grad=True)
    kept: list[torch.Tensor] = []
    log = UnusedGraphs(Path(__file__).parent, {id(w)})
    late = (w * 3).sum()
    LIVING.append(late)
    found = []
    for number in range(5):
        kept.append(kept_of(w))
        begin(log, late if number == 1 else (w * 3).sum())
        found.append(sum(one.num_rounds for one in log.look()))

    assert len(kept) == 5
    assert found == [0, 0, 1, 1, 1]


def test_a_program_is_watched_until_what_it_keeps_is_old() -> None:
    """From when it was first seen, for as many calls as it takes; nothing to wait for, nothing is said."""
    w = torch.ones(2, requires_grad=True)
    kept: list[torch.Tensor] = []
    log = UnusedGraphs(Path(__file__).parent, ())
    said = [log.waits()]
    for number in range(5):
        if number == 1:
            kept.append(kept_of(w))
        begin(log, (w * 3).sum())
        said.append(log.waits())
    held_text = "the graphs that kept[*] holds had not gone backward"

    assert said == [None, None, held_text, held_text, None, None]
    del kept
    LIVING.clear()
    assert log.look() == []


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
