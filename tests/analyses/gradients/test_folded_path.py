"""The path to a node, with what repeats counted."""

from factories import graph, leaf, op
from hypothesis import given
from hypothesis import strategies as st

from gradinspect.analyses.gradients.folded_path import SHORT, fold_path
from gradinspect.graph import Graph


def chain(names: str) -> Graph:
    """Put ops in a row."""
    return graph(*(op(name, place + 1) for place, name in enumerate(names)), leaf("w", 3))


def told(names: str, selected: int) -> list[object]:
    """Fold the path through all of a chain."""
    path = range(len(names) + 1)
    return [part if isinstance(part, int) else (part[0], part[-1]) for part in fold_path(chain(names), path, selected)]


def test_the_steps_of_an_rnn_are_counted() -> None:
    """The first is written, and the selected one with what is left and right of it."""
    assert told("x" + "abc" * 20, 61) == [0, 1, 2, 3, (4, 60), 61]
    assert told("x" + "abc" * 20, 30) == [0, 1, 2, 3, (4, 29), 30, (31, 60), 61]


def test_a_short_path_is_read_as_it_is() -> None:
    """As is one in which nothing repeats."""
    assert told("abc" * 7, 21) == list(range(22))
    assert told("abcdefghijklmnopqrstuvwxyzABCDE", 31) == list(range(32))


@given(st.text("ab", max_size=3 * SHORT), st.integers(0, 3 * SHORT))
def test_nothing_is_lost(names: str, selected: int) -> None:
    """All nodes are there in order, and the selected one is written."""
    here = min(selected, len(names))
    path = range(len(names) + 1)
    parts = list(fold_path(chain(names), path, here))
    nodes = [node for part in parts for node in ([part] if isinstance(part, int) else part)]

    assert nodes == list(path)
    assert here in parts
