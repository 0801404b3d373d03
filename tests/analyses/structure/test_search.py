"""Finding nodes by the words that a reader knows."""

import pytest
from factories import graph, leaf, op, residual_blocks, two_layers

from gradinspect.analyses.structure.search import Found, Hit, Search
from gradinspect.graph import Frame, Graph, ModuleCall


def nodes(drawn: Graph, text: str) -> list[int]:
    """Find, and keep what are no module calls."""
    return [hit.node for hit in Search(drawn).find(text).hits if hit.call is None]


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


def test_nothing_is_found_by_an_empty_text() -> None:
    """Not even by name."""
    assert Search(two_layers()).find(" ") == Found((), 0)


def test_a_module_call_is_found_before_its_nodes() -> None:
    """By its path and its class; a call of a single node is that node."""
    hits = Search(two_layers()).find("linear").hits

    assert hits == (Hit(1, 1), Hit(1), Hit(2), Hit(4, 3), Hit(4), Hit(5))
    assert Search(two_layers()).find("relu").hits == (Hit(3),)


def test_each_call_of_a_repeat_is_found() -> None:
    """Also those that the tree does not tell."""
    assert [hit.node for hit in Search(residual_blocks(4)).find("block").hits if hit.call is not None] == [0, 3, 6, 9]


def test_characters_that_mean_something_in_a_pattern_are_only_characters() -> None:
    """Whoever types a bracket or a dot gets no error, and nothing that he did not ask for."""
    drawn = graph(op("MulBackward0", 1), leaf("w.*(", 2))

    assert nodes(drawn, "w.*(") == [0, 1]
    assert nodes(drawn, "[(+?") == []


def test_each_node_is_found_by_its_number() -> None:
    """Whatever it is."""
    search = Search(residual_blocks(4))

    assert all(Hit(node_id) in search.find(f"#{node_id}").hits for node_id in range(14))


def test_what_only_the_code_of_a_line_has_comes_last() -> None:
    """Whoever searches for a class does not want every node of a line that also calls it."""
    frame = Frame(file="train.py", line=2, code="y = x.relu() * 2")
    drawn = graph(op("MulBackward0", 1, frame=0), op("ReluBackward0", 2, frame=0), leaf("x", 2), frames=(frame,))

    assert Search(drawn).find("relu") == Found((Hit(1), Hit(0)), 1)
    assert Search(drawn).find("relu mul") == Found((Hit(0),), 0)


def test_a_module_around_a_module_of_one_node_is_found() -> None:
    """It has a row of its own, and the node knows only the inner one."""
    calls = (ModuleCall(path="body", class_name="Sequential"), ModuleCall(path="body.0", class_name="ReLU", parent=0))
    drawn = graph(op("ReluBackward0", 1, module=1), leaf("x", 2), modules=calls)

    assert Search(drawn).find("sequential").hits == (Hit(0, 0),)
