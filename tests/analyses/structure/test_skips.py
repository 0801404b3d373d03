"""Which edges out of a block are residual connections."""

from factories import graph, op

from gradinspect.analyses.structure.skips import SkipEdge, skip_edges


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
