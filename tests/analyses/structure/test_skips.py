"""Which edges out of a block are residual connections."""

import pytest
from factories import graph, leaf, op

from gradinspect.analyses.structure.skips import SkipEdge, skip_edges
from gradinspect.graph import Graph, Node


def test_the_identity_of_a_sum_is_a_skip() -> None:
    """Of `relu(x + f(x))` the edge of `x` goes around the body, and has the position of its argument."""
    block = graph(
        op("ReluBackward0", 1), op("AddBackward0", 2, 4), op("MmBackward0", 3), op("ReluBackward0", 4), op("A")
    )

    assert skip_edges(block, range(4)) == {SkipEdge(1, 1)}


def test_a_skip_may_pass_a_projection_or_several_sums() -> None:
    """A `downsample` is shorter than the body; two sums in a row are the skip of a transformer's block."""
    projected = graph(op("AddBackward0", 1, 2), op("ConvB", 5), op("BnB", 3), op("ReluB", 4), op("ConvB", 5), op("A"))
    two_sums = graph(
        op("AddBackward0", 1, 3), op("MlpB", 2), op("NormB", 3),
        op("AddBackward0", 4, 6), op("AttnB", 5), op("NormB", 6), op("A"),
    )  # fmt: skip

    assert skip_edges(projected, range(5)) == {SkipEdge(1, 0)}
    assert skip_edges(two_sums, range(6)) == {SkipEdge(3, 1)}


def test_other_forks_are_no_skips() -> None:
    """Neither a gate, nor attention, nor equal branches, nor the steps of an RNN that read one sequence."""
    gate = graph(op("MulBackward0", 1, 3), op("SigmoidB", 2), op("MmB", 3), op("A"))
    attention = graph(op("BmmBackward0", 1, 2), op("MmB", 5), op("SoftmaxB", 3), op("BmmB", 4), op("MmB", 5), op("A"))
    branches = graph(op("AddBackward0", 1, 2), op("ConvB", 3), op("ConvB", 3), op("A"))
    steps = graph(*(op("AddBackward0", step + 1, 6) for step in range(6)), op("A"))
    twice = graph(op("AddBackward0", 1, 1), op("A"))

    assert [skip_edges(g, range(len(g.nodes) - 1)) for g in (gate, attention, branches, steps, twice)] == [
        frozenset()
    ] * 5


def ways_out(num_ways: int, *lengths: int) -> Graph:
    """Make a sum of one direct way out and others of some lengths, which all lead to one node."""
    nodes: list[Node] = []
    first = 1
    heads = []
    end = 1 + sum(lengths)
    for length in lengths:
        heads.append(first)
        nodes += [
            op("BodyB", place + 1 if place + 1 < first + length else end) for place in range(first, first + length)
        ]
        first += length
    assert len(heads) == num_ways
    return graph(op("AddBackward0", end, *heads), *nodes, op("A"))


@pytest.mark.parametrize(("num_ways", "is_skip"), [(1, True), (3, True), (4, False), (5, False)])
def test_more_ways_than_query_key_and_value_are_none(num_ways: int, is_skip: bool) -> None:
    """The steps of an RNN that read one sequence are many ways."""
    drawn = ways_out(num_ways, *[2] * num_ways)

    assert skip_edges(drawn, range(1 + 2 * num_ways)) == ({SkipEdge(0, 0)} if is_skip else set())


def test_the_shortest_of_two_ways_to_a_node_counts() -> None:
    """A way through the block that was found first may be the longer one; the skip is the shorter than all others."""
    drawn = graph(
        op("AddBackward0", 1, 3), op("NormB", 2), op("NormB", 4), op("SumB", 4, 6), op("AddBackward0", 5, 6),
        op("MlpB", 6), op("A"),
    )  # fmt: skip

    assert skip_edges(drawn, range(6)) == {SkipEdge(3, 1)}


def test_each_node_behind_a_block_has_its_own_skip() -> None:
    """Edges that lead to nothing, to a leaf, or from what the output does not lead to, are none."""
    drawn = graph(
        op("AddBackward0", 1, 2, 7), op("AddBackward0", 3, 5), op("CatBackward0", 4, 6, None, 7), op("XB", 5),
        op("YB", 6), op("A"), op("B"), leaf("w", 3),
    )  # fmt: skip
    unreached = graph(op("AddBackward0", 2), op("AddBackward0", 3, 4), op("XB", 3), op("A"), op("B"))

    assert skip_edges(drawn, range(5)) == {SkipEdge(1, 1), SkipEdge(2, 1)}
    assert skip_edges(unreached, range(3)) == set()


@pytest.mark.parametrize("name", ["AddBackward0", "SubBackward0", "CatBackward0", "StackBackward0", "MulBackward0"])
def test_skips_fork_at_sums_and_joints(name: str) -> None:
    """And at no product; a fork of a way and a leaf is none."""
    forked = graph(op(name, 1, 2), op("XB", 2), op("A"))
    with_leaf = graph(op("ReluB", 1, 2), op(name, 4, 5), op("XB", 3), op("YB", 4), op("A"), leaf("w", 3))

    assert skip_edges(forked, range(2)) == ({SkipEdge(0, 1)} if name != "MulBackward0" else set())
    assert skip_edges(with_leaf, range(4)) == set()


def test_a_way_is_as_long_as_its_edges_are_many() -> None:
    """Of two ways out that fork at one sum, that of one node more is the body."""
    drawn = graph(op("AddBackward0", 1, 2), op("XB", 5), op("YB", 3), op("ZB", 5), op("A"), op("B"))
    later = graph(op("NormB", 1), op("AddBackward0", 2, 3), op("XB", 4), op("CatBackward0", 4, 5), op("A"), op("B"))

    assert skip_edges(drawn, range(4)) == {SkipEdge(1, 0)}
    assert skip_edges(later, range(4)) == set()
