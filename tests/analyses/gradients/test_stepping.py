"""Where to stop, and the way back to the root."""

from itertools import pairwise

import pytest
from factories import graph, leaf, op
from hypothesis import given
from hypothesis import strategies as st

from gradinspect.analyses.gradients.stepping import (
    Arrived,
    Passed,
    Step,
    SteppingOutcome,
    TensorPreview,
    combine,
    leaf_node,
    parse_breakpoint,
    path_to_root,
    place_name,
)
from gradinspect.analyses.structure.node_names import node_number
from gradinspect.errors import GradInspectError
from gradinspect.graph import Frame, Graph, ModuleCall


def tensor(*shape: int, zeros: int = 0, bad: int = 0) -> TensorPreview:
    """Make what is shown of a gradient."""
    return TensorPreview(shape=shape, dtype="float32", norm=1.0, low=0.0, high=1.0, num_zeros=zeros, num_nonfinite=bad)


def step(node: int, came: TensorPreview | None = None, went: TensorPreview | None = None) -> Step:
    """Make a step with one gradient in and one out."""
    return Step(order=1, node=node, incoming=(Arrived(tensor=came),), outgoing=(Passed(tensor=went),))


def two_layers() -> Graph:
    """A product and a sum in two modules, and two leaves."""
    return graph(
        op("SumBackward0", 1, frame=0),
        op("MulBackward0", 2, 3, module=1, frame=1),
        leaf("fc.weight", 2, 3),
        leaf("fc.bias", 3),
        modules=(ModuleCall(path="", class_name="Net"), ModuleCall(path="fc", class_name="Linear", parent=0)),
        frames=(Frame(file="train.py", line=9, code="loss.sum()"), Frame(file="nets/model.py", line=4, code="x * w")),
        arguments={"MulBackward0": ("self", "other")},
    )


@pytest.mark.parametrize(
    ("word", "stops_at"),
    [
        ("MulBackward0", {1}), ("Mul*", {1}), ("fc", {1}), ("model", {1}), ("fc.weight", {2}), ("#0", {0}),
        ("train.py:9", {0}), ("model.py:4", {1}), ("nets/model.py:4", {1}), ("*Backward0", {0, 1}),
    ],
)  # fmt: skip
def test_breakpoints_name_nodes(word: str, stops_at: set[int]) -> None:
    """A class, a module, a parameter, a number or a line; patterns too."""
    point = parse_breakpoint(f" {word} ", two_layers())

    assert {node for node in range(4) if point.hits(step(node))} == stops_at
    assert point.text == word


@pytest.mark.parametrize("word", ["2x3", "[2, 3]", "*x3", "2 x *", "2,3"])
def test_breakpoints_name_shapes(word: str) -> None:
    """A gradient of that shape, in or out; `*` is any size."""
    point = parse_breakpoint(word, two_layers())

    assert point.hits(step(0, tensor(2, 3)))
    assert point.hits(step(0, None, tensor(2, 3)))
    assert not point.hits(step(0, tensor(3)))
    assert not point.hits(step(0, tensor(4, 4)))


def test_nan_stops_at_the_node_that_made_it() -> None:
    """What came was finite, what went was not."""
    point = parse_breakpoint("nan", two_layers())

    assert point.hits(step(0, tensor(2), tensor(2, bad=1)))
    assert not point.hits(step(0, tensor(2, bad=1), tensor(2, bad=1)))
    assert not point.hits(step(0, tensor(2), tensor(2)))
    assert not point.hits(step(0, tensor(2)))


def test_zero_stops_at_the_node_that_killed_it() -> None:
    """A gradient came, and nothing but zeros went."""
    point = parse_breakpoint("zero", two_layers())

    assert point.hits(step(0, tensor(2), tensor(2, zeros=2)))
    assert not point.hits(step(0, tensor(2, zeros=2), tensor(2, zeros=2)))
    assert not point.hits(step(0, tensor(2), tensor(2, zeros=1)))
    assert not point.hits(step(0, tensor(2)))


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("#9", "There is no node '#9'. The nodes are #0 to #3."),
        ("#x", "There is no node '#x'. The nodes are #0 to #3."),
        ("train.py:10", "No node was made at 'train.py:10'. See the lines with 'where' or gradinspect trace."),
        (
            "MulBackward1",
            'No class, module or parameter in this graph matches "MulBackward1". Closest matches: "MulBackward0", '
            '"SumBackward0", "AccumulateGrad".',
        ),
    ],
)  # fmt: skip
def test_what_is_not_there(word: str, sentence: str) -> None:
    """One sentence."""
    with pytest.raises(GradInspectError) as found:
        parse_breakpoint(word, two_layers())

    assert str(found.value) == sentence


def test_leaves_and_numbers() -> None:
    """A leaf is found by its name or a pattern, a node by its number."""
    assert leaf_node("fc.bias", two_layers()) == 3
    assert leaf_node("*.weight", two_layers()) == 2
    assert node_number("3", two_layers()) == 3
    with pytest.raises(GradInspectError, match='No parameter matches "w"'):
        leaf_node("w", two_layers())


def test_the_way_to_the_root() -> None:
    """The node first, the root last; places are named as arguments."""
    assert path_to_root(two_layers(), 3) == (3, 1, 0)
    assert path_to_root(two_layers(), 0) == (0,)
    assert place_name(two_layers(), 1, 1) == "other"
    assert place_name(two_layers(), 0, 0) == "[0]"


@pytest.mark.slow
@given(st.integers(1, 60), st.data())
def test_the_way_is_made_of_edges(size: int, data: st.DataObject) -> None:
    """Each node on it has an edge to the one before, and no way is shorter than it needs to be."""
    nodes = []
    for number in range(size):
        later = st.integers(number + 1, size)
        nodes.append(op("AddBackward0", *data.draw(st.lists(later, min_size=1, max_size=3))))
    found = graph(*nodes, leaf("w", 1))
    path = path_to_root(found, size)

    assert path[0] == size
    assert path[-1] == 0 or len(path) == 1
    for after, before in pairwise(path):
        assert after in {edge.next_node for edge in found.nodes[before].next_edges if edge is not None}


def test_two_passes_add_up() -> None:
    """Counts are summed, names kept."""
    first = SteppingOutcome(graph=two_layers(), num_steps=4, num_equal=2, watched=(("a", 1),), num_leaves=2)
    second = SteppingOutcome(
        graph=two_layers(), num_steps=3, num_equal=1, watched=(("a", 2), ("b", 1)), differing=(1,), is_complete=False
    )

    assert combine(first, second) == SteppingOutcome(
        graph=two_layers(), num_steps=7, num_equal=3, watched=(("a", 3), ("b", 1)), differing=(1,), num_leaves=2,
        is_complete=False,
    )  # fmt: skip
