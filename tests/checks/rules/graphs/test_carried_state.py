"""Where to detach what one iteration hands on to the next."""

import pytest
from factories import graph, leaf, op

from gradinspect.checks.facts import EarlierCall, Held, Holds
from gradinspect.checks.rules.graphs.carried_state import carried_remedy, is_carried, joins_in_time
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
