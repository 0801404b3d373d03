"""Where to detach what one iteration hands on to the next."""

import pytest
from factories import graph, leaf, op

from gradinspect.checks.facts.backward_calls import EarlierCall, Held, Holds
from gradinspect.checks.rules.graphs.carried_state import carried_remedy, is_carried, joins_in_time, made_under_name
from gradinspect.graph import Frame, Graph

BACKWARD = Frame(file="rnn.py", line=12, function="train", code="loss.backward()")
CALL = EarlierCall(name="backward #1", frame=BACKWARD, root="loss", nodes=frozenset(range(3)), clock=3)


def iterations(made: Frame, read: Frame, *callers: Frame) -> Graph:
    """A new node that reads an old one, each on its line."""
    return graph(
        op("MulBackward0", 1, sequence_nr=4, frame=1),
        op("TanhBackward0", 2, sequence_nr=2, frame=0),
        leaf("w", 4),
        frames=(made, read, *callers),
    )


def line(number: int, code: str, function: str = "train", caller: int | None = None) -> Frame:
    """A line of the program."""
    return Frame(file="rnn.py", line=number, function=function, code=code, caller=caller)


@pytest.mark.parametrize(
    ("made", "read", "kind", "remedy"),
    [
        (line(10, "h = cell(x, h)"), line(10, "h = cell(x, h)"), "tensor", "add 'h = h.detach()'."),
        (
            line(10, "out, s = lstm(x, s)"),
            line(10, "out, s = lstm(x, s)"),
            "tuple",
            "add 's = tuple(one.detach() for one in s)'.",
        ),
        (
            line(4, "self.h = cell(x, self.h)", "forward"),
            line(4, "self.h = cell(x, self.h)", "forward"),
            "tensor",
            "at rnn.py:4, write 'self.h = cell(x, self.h.detach())'.",
        ),
        (
            line(4, "self.s = cell(x, self.s)", "forward"),
            line(4, "self.s = cell(x, self.s)", "forward"),
            "nested",
            "At rnn.py:4, detach() every tensor of self.s: it is from the previous iteration.",
        ),
        (
            line(10, "new = cell(x, h)"),
            line(9, "y = head(h)"),
            None,
            "Hand new.detach() on to the next iteration (rnn.py:10).",
        ),
        (line(10, "return cell(x)", "f"), line(9, "y = head(h)"), None, "Detach what rnn.py:10 made before the next"),
    ],
)
def test_the_advice_names_the_variable(made: Frame, read: Frame, kind: Holds | None, remedy: str) -> None:
    """After backward if it is a variable there, else where it is read; containers are taken apart."""
    recorded = iterations(made, read)
    found = joins_in_time(recorded, CALL)

    assert [join.new.name for join in found] == ["MulBackward0"]
    assert remedy in carried_remedy(recorded, found, BACKWARD, lambda name: None if kind is None else Held(kind, name))


def test_a_value_made_before_the_loop_is_not_carried() -> None:
    """Its line stands before the line that reads it, and has not run again."""
    once = iterations(line(5, "penalty = w.exp()"), line(10, "loss = loss + penalty"))
    later = iterations(line(11, "mean = mean + loss"), line(10, "loss = loss + mean"))

    assert [is_carried(recorded, joins_in_time(recorded, CALL)[0], CALL) for recorded in (once, later)] == [False, True]


def test_a_value_that_its_own_line_reads_is_carried() -> None:
    """So is one whose line has run again since, wherever it stands; another function says nothing."""
    own = iterations(line(10, "h = cell(x, h)"), line(10, "h = cell(x, h)"))
    elsewhere = iterations(line(10, "h = cell(x)", "f"), line(9, "y = head(h)", "g"))
    again = graph(
        op("MulBackward0", 1, 3, sequence_nr=4, frame=1), op("TanhBackward0", 2, sequence_nr=2, frame=0), leaf("w", 4),
        op("TanhBackward0", None, sequence_nr=3, frame=0), frames=(line(5, "p = w.exp()"), line(10, "y = p")),
    )  # fmt: skip

    assert [is_carried(one, joins_in_time(one, CALL)[0], CALL) for one in (own, elsewhere, again)] == [
        True, False, True,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "written"),
    [
        ("h = cell(x)", "h.detach()"),
        ("h, s = cell(x)", "the detached result of rnn.py:10"),
        ("cell(x)", "the detached result of rnn.py:10"),
    ],
)
def test_an_old_value_is_written_without_its_graph(code: str, written: str) -> None:
    """By its variable where there is one."""
    recorded = iterations(line(10, code), line(12, "y = head(h)", "other"))
    (join,) = joins_in_time(recorded, CALL)
    made, detached = made_under_name(recorded, join)

    assert made is not None
    assert (made.line, detached) == (10, written)


def test_where_to_detach_without_a_line_of_backward() -> None:
    """Nothing can be added after it, and no function is the one that calls it."""
    own = iterations(line(10, "h = cell(x, h)"), line(10, "h = cell(x, h)"))
    other = iterations(line(10, "new = cell(x, h)"), line(9, "y = head(h)"))
    elsewhere = iterations(line(10, "new = cell(x, h)", "f"), line(9, "y = head(h)", "f"))

    def advice(recorded: Graph, backward: Frame | None) -> str:
        return carried_remedy(recorded, joins_in_time(recorded, CALL), backward, lambda _name: None)

    made_before = "Detach what rnn.py:10 made before the next iteration reads it at rnn.py:9."
    assert (
        advice(own, None) == "Detach what comes from the previous iteration: at rnn.py:10, write "
        "'h = cell(x, h.detach())'."
    )
    assert advice(other, None) == made_before
    assert advice(elsewhere, BACKWARD) == made_before
    assert advice(other, BACKWARD) == "Hand new.detach() on to the next iteration (rnn.py:10)."


def test_what_leads_to_an_earlier_call_is_old() -> None:
    """Also what was made before it and that it did not go through, but what did not lead there is not."""
    recorded = graph(
        op("AddBackward0", 1, 4, sequence_nr=9),
        op("MulBackward0", None, 2, sequence_nr=2),
        op("TanhBackward0", 3, sequence_nr=1),
        leaf("w", 4),
        op("ExpBackward0", None, 3, sequence_nr=2),
    )
    call = EarlierCall(name="backward #1", frame=BACKWARD, root="loss", nodes=frozenset({1}), clock=3)

    assert [(join.new.name, join.old.name) for join in joins_in_time(recorded, call)] == [
        ("AddBackward0", "MulBackward0")
    ]


def test_of_several_variables_the_one_that_is_read_again_is_detached() -> None:
    """Also where an outer line assigns it."""
    pair = iterations(line(10, "out, h = cell(x, h)"), line(10, "out, h = cell(x, h)"))
    called = iterations(
        line(3, "return a, b", "cell", caller=2), line(11, "y = head(h)"), line(10, "out, h = cell(x, h)")
    )

    for recorded in (pair, called):
        (join,) = joins_in_time(recorded, CALL)
        made, detached = made_under_name(recorded, join)
        assert made is not None
        assert (made.line, detached) == (10, "h.detach()")
