"""Iterations of a loop that keep graph history, judged on graphs made by hand."""

from functools import partial

import pytest
from factories import graph, leaf, op, saved
from msgspec.structs import replace

from gradinspect.checks.facts.backward_calls import EarlierCall, Held, LaterRound, UnusedHistory, earlier_rounds
from gradinspect.checks.facts.graphs import KeptHistory
from gradinspect.checks.rules.graphs.growing_graphs import growing_findings, unused_findings
from gradinspect.graph import Frame, Graph, SavedValue

CELL = Frame(file="rnn.py", line=10, code="h = cell(x, h)")
HEAD = Frame(file="rnn.py", line=11, code="loss = head(h)")
BACKWARD = Frame(file="rnn.py", line=12, code="loss.backward(retain_graph=True)")
APPEND = Frame(file="rnn.py", line=13, code="losses.append(loss)")


def first_call(*numbers: int, clock: int = 4, frame: Frame = BACKWARD) -> EarlierCall:
    """A backward call that went through nodes 0 to 3 unless told otherwise."""
    return EarlierCall(name="backward #1", frame=frame, root="loss", nodes=frozenset(numbers or range(4)), clock=clock)


def second_round(*kept: SavedValue, reads_line: int = 0) -> Graph:
    """`h = cell(x, h)` twice; the older one is from the first round and was made on the line that is asked for."""
    return graph(
        op("SumBackward0", 1, sequence_nr=6, frame=1),
        op("TanhBackward0", 2, sequence_nr=5, frame=0),
        op("TanhBackward0", 3, sequence_nr=1, frame=reads_line, saved=kept),
        leaf("cell.weight", 4, 4),
        frames=(CELL, HEAD),
    )


def test_an_iteration_is_a_call_on_the_same_line_with_newer_nodes() -> None:
    """Another line is another loss, and a graph without newer nodes was there before the first call."""
    elsewhere = first_call(frame=HEAD)
    later = first_call(clock=7)

    assert earlier_rounds(second_round(), [first_call(), elsewhere, later], BACKWARD) == [first_call()]
    assert earlier_rounds(second_round(), [first_call()], None) == []


def test_a_line_that_reads_what_it_made_before_grows() -> None:
    """Both lines, how much of the graph is old, and where to detach."""
    holds = partial(Held, "tensor")
    (found,) = growing_findings(LaterRound(second_round(), [first_call()], [], BACKWARD, holds))

    assert [(place.role, place.line) for place in found.places] == [("old", 10), ("new", 10), ("backward", 12)]
    assert found.text.startswith(
        "h (rnn.py:10) brings the graph of an earlier iteration into this one, so each iteration makes backward slower "
        "and keeps more memory. (TanhBackward0 reads what TanhBackward0 made before backward #1, which went through 1 "
    )
    assert found.remedy.startswith(
        "Detach what one iteration hands on to the next: after loss.backward() at rnn.py:12, add 'h = h.detach()'."
    )


def test_a_trunk_that_is_computed_once_is_no_growth() -> None:
    """Its line is not run again: the heads read it from another one."""
    assert list(growing_findings(LaterRound(second_round(reads_line=1), [first_call(1, clock=5)], [], BACKWARD))) == []


def test_a_freed_graph_is_reported_once() -> None:
    """Backward through it fails, which has a finding of its own."""
    freed = saved("_saved_result", 4, storage=0, status="freed")

    assert list(growing_findings(LaterRound(second_round(freed), [first_call()], [], BACKWARD))) == []


@pytest.mark.parametrize(
    ("holder", "is_found"),
    [
        (KeptHistory(held_by="variable", name="losses[*]", num_tensors=1, num_rounds=1, adds=True), True),
        (KeptHistory(held_by="variable", name="loss", num_tensors=1, num_rounds=1), False),
        (KeptHistory(held_by="variable", name="log[*]", num_tensors=2, num_rounds=2), True),
        (KeptHistory(held_by="gradient", num_tensors=2, num_rounds=1), True),
    ],
)  # fmt: skip
def test_who_adds_keeps_history(holder: KeptHistory, is_found: bool) -> None:  # a column
    """A list that is added to, or that holds several iterations already; a variable that is replaced lets go."""
    clean = graph(op("SumBackward0", 1, sequence_nr=6), leaf("w", 4))
    found = list(growing_findings(LaterRound(clean, [first_call()], [holder], BACKWARD)))

    assert [finding.code for finding in found] == ["GI801"] * is_found


def test_the_line_that_stores_is_named() -> None:
    """With the name of the container, and what to store in its place."""
    holder = KeptHistory(held_by="variable", name="losses[*]", num_tensors=3, num_rounds=3, stores=(APPEND,), adds=True)
    (found,) = growing_findings(
        LaterRound(graph(op("SumBackward0", sequence_nr=6)), [first_call()], [holder], BACKWARD)
    )

    assert [(place.role, place.line) for place in found.places] == [("stored", 13), ("backward", 12)]
    assert found.text.startswith("losses[*] holds 3 tensors with the graph")
    assert (
        found.remedy
        == "At rnn.py:13, store a tensor without history, by detach(), or by item() where only its number is read."
    )


def test_an_iteration_begins_with_the_node_after_the_call() -> None:
    """The clock of a call is the number of that node; the newest here is 6."""
    assert [len(earlier_rounds(second_round(), [first_call(clock=clock)], BACKWARD)) for clock in (5, 6, 7)] == [
        1,
        1,
        0,
    ]


def test_gradients_of_the_previous_iteration_keep_its_graph() -> None:
    """That one is named, not an earlier one."""
    holder = KeptHistory(held_by="gradient", num_tensors=2, num_rounds=1)
    rounds = [first_call(frame=HEAD), first_call()]
    (found,) = growing_findings(LaterRound(graph(op("SumBackward0", sequence_nr=6)), rounds, [holder], BACKWARD))

    assert [(place.role, place.line) for place in found.places] == [("made", 12), ("backward", 12)]
    assert found.text.startswith("2 gradients (.grad) of the previous iteration keep the graph that create_graph=True")


@pytest.mark.parametrize(
    ("stores", "made", "lines", "what", "remedy"),
    [
        ((), None, [], "log[*] holds", "Store in log[*] a tensor without history, by detach()"),
        ((), HEAD, [HEAD.line], "log[*] holds", f"rnn.py:{HEAD.line} makes what log[*] holds: keep a number of it, or"),
        ((APPEND, CELL, HEAD), HEAD, [13, 10], "rnn.py:13 stores", "At rnn.py:13, store a tensor without history"),
    ],
)
def test_graphs_that_no_backward_goes_through(
    stores: tuple[Frame, ...], made: Frame | None, lines: list[int], what: str, remedy: str
) -> None:
    """Up to two lines that store them are shown, and the first is to change; else the one that made them, if known."""
    holder = KeptHistory(held_by="variable", name="log[*]", num_tensors=2, num_rounds=2, stores=stores, made=made)
    (unused,) = unused_findings(UnusedHistory([holder], BACKWARD))
    (held,) = growing_findings(LaterRound(graph(op("SumBackward0", sequence_nr=6)), [first_call()], [holder], BACKWARD))

    assert [place.line for place in unused.places] == [place.line for place in held.places] == [*lines, 12]
    assert unused.text.startswith("log[*] holds 2 tensors with a graph that no backward has gone through")
    assert unused.remedy == (
        f"Compute under torch.no_grad() what {what}, or store it without history: item() or detach()."
    )
    assert held.remedy.startswith(remedy)


def test_the_lists_of_one_evaluation_are_one_finding() -> None:
    """With each line that stores, in their order; what no line is known of is another finding."""
    kept = [
        KeptHistory(held_by="variable", name="outs[*]", num_tensors=2, num_rounds=2, stores=(APPEND,), adds=True),
        KeptHistory(held_by="variable", name="total", num_tensors=1, num_rounds=2, stores=(CELL,), adds=True),
        KeptHistory(held_by="variable", name="log[*]", num_tensors=2, num_rounds=2),
    ]
    clean = graph(op("SumBackward0", sequence_nr=6))
    together, other = growing_findings(LaterRound(clean, [first_call()], kept, BACKWARD))
    unused = list(unused_findings(UnusedHistory(kept, BACKWARD)))

    assert [(place.role, place.line) for place in together.places] == [("stored", 10), ("stored", 13), ("backward", 12)]
    assert together.subjects == ("total", "outs[*]")
    assert together.text.startswith("total and outs[*] hold 3 tensors with the graph")
    assert together.remedy == (
        "At rnn.py:10 and rnn.py:13, store a tensor without history, by detach(), or by item() where only its number "
        "is read."
    )
    assert other.subjects == ("log[*]",)
    assert unused[0].remedy == (
        "Compute under torch.no_grad() what rnn.py:10 and rnn.py:13 store, or store it without history: item() or "
        "detach()."
    )
    assert [finding.subjects for finding in unused] == [("total", "outs[*]"), ("log[*]",)]


def test_only_a_call_that_the_graph_goes_through_is_an_earlier_iteration() -> None:
    """The last one of several; others are passed over."""
    through, past = first_call(1, clock=2), first_call(7, clock=4)
    (found,) = growing_findings(
        LaterRound(second_round(), [past, replace(through, name="backward #2"), past], [], BACKWARD)
    )

    assert "made before backward #2, which went through 1 node of this graph.)" in found.text
    assert list(growing_findings(LaterRound(second_round(), [past], [], BACKWARD))) == []
    assert list(growing_findings(LaterRound(second_round(), [first_call(1, clock=1)], [], BACKWARD))) == []
