"""Finding nodes by the words that a reader knows."""

import pytest
from factories import graph, leaf, op, residual_blocks, two_layers

from gradinspect.analyses.search import Hit, Search
from gradinspect.graph import Graph


def nodes(drawn: Graph, text: str) -> list[int]:
    """Find, and keep what are no module calls."""
    return [hit.node for hit in Search(drawn).find(text) if hit.call is None]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("addmm", [1, 4]),  # a class, in any case
        ("2.bias", [1, 6]),  # a parameter, and the node whose gradient goes there
        ("#5", [5]),
        ("model.py:21 Relu", [3]),  # all words, in any order
        ("[4, *]", [1, 3, 4]),
        ("f32[20,*]", [2, 9]),  # blanks in a shape have no meaning
        ("[3, 20]", [7]),  # of a leaf
        ("TBackward0 [10", [5]),  # not typed to its end
        ("float32 nll", [0]),
        ("absent", []),
        ("  ", []),
    ],
)
def test_what_is_found(text: str, found: list[int]) -> None:
    """Classes, names, numbers, lines, shapes, dtypes."""
    assert nodes(two_layers(), text) == found


def test_a_module_call_is_found_before_its_nodes() -> None:
    """By its path and its class; a call of a single node is that node."""
    hits = Search(two_layers()).find("linear")

    assert hits == (Hit(1, 1), Hit(1), Hit(2), Hit(4, 3), Hit(4), Hit(5))
    assert Search(two_layers()).find("relu") == (Hit(3),)


def test_each_call_of_a_repeat_is_found() -> None:
    """Also those that the tree does not tell."""
    assert [hit.node for hit in Search(residual_blocks(4)).find("block") if hit.call is not None] == [0, 3, 6, 9]


def test_characters_that_mean_something_in_a_pattern_are_only_characters() -> None:
    """Whoever types a bracket or a dot gets no error, and nothing that he did not ask for."""
    drawn = graph(op("MulBackward0", 1), leaf("w.*(", 2))

    assert nodes(drawn, "w.*(") == [0, 1]
    assert nodes(drawn, "[(+?") == []


def test_each_node_is_found_by_its_number() -> None:
    """Whatever it is."""
    search = Search(residual_blocks(4))

    assert all(Hit(node_id) in search.find(f"#{node_id}") for node_id in range(14))
