"""Products of vectors that were normalized along another axis, judged on graphs made by hand."""

import pytest
from factories import graph, leaf, op

from gradinspect.checks.facts.backward_calls import BackwardStarts
from gradinspect.checks.findings import Finding
from gradinspect.checks.rules.losses.normalized_axes import axes_findings
from gradinspect.graph import Frame, Graph, Node, SavedValue

LINES = (
    Frame(file="train.py", line=3, code="z = F.normalize(z, dim=0)"),
    Frame(file="train.py", line=5, code="z @ z.t()"),
)


def along(axis: int) -> tuple[SavedValue, ...]:
    """What a reduction keeps of its axis."""
    return (SavedValue(name="_saved_dim", kind="tuple", value=(axis,)),)


def normalized(first: int, axis: int, shape: tuple[int, int] = (6, 4)) -> list[Node]:
    """F.normalize, as the nodes from a number on; the last of them is the leaf."""
    return [
        op("DivBackward0", first + 4, first + 1, shape=shape, frame=0),
        op("ExpandBackward0", first + 2, shape=shape),
        op("ClampMinBackward0", first + 3, shape=(1, 4)),
        op("LinalgVectorNormBackward0", first + 4, shape=(1, 4), saved=along(axis)),
        leaf(f"z{first}", *shape),
    ]


def judged(*nodes: Node) -> list[Finding]:
    """Judge the product, which is the first node."""
    recorded: Graph = graph(*nodes, frames=LINES)
    return list(axes_findings(BackwardStarts(recorded)))


@pytest.mark.parametrize(
    ("left", "right", "is_wrong"), [(0, 0, True), (1, 1, False), (-1, -1, False), (2**64 - 2, 0, True), (0, 1, False)]
)
def test_a_product_with_the_transposed_sums_over_features(left: int, right: int, *, is_wrong: bool) -> None:
    """`z @ y.t()` needs vectors of length 1 along axis 1; only where both have it along axis 0 it is reported."""
    found = judged(
        op("MmBackward0", 2, 1, shape=(6, 6), frame=1),
        op("TBackward0", 7, shape=(4, 6)),
        *normalized(2, left),
        *normalized(7, right),
    )

    assert [finding.code for finding in found] == (["GI703"] if is_wrong else [])
    if found:
        assert found[0].remedy == "At train.py:3, normalize along axis 1, as by dim=1: the product sums over it."
        assert [(place.role, place.line) for place in found[0].places] == [("divided", 3), ("product", 5)]


def test_a_product_over_the_batch_wants_axis_0() -> None:
    """As `z.t() @ y`, a matrix of correlations."""
    turned = op("TBackward0", 2, shape=(4, 6))
    product = op("MmBackward0", 1, 7, shape=(4, 4), frame=1)

    assert judged(product, turned, *normalized(2, 0), *normalized(7, 0)) == []
    assert judged(product, turned, *normalized(2, 1), *normalized(7, 1))


@pytest.mark.parametrize(("summed", "is_wrong"), [(1, True), (0, False)])
def test_a_sum_of_products_too(summed: int, *, is_wrong: bool) -> None:
    """`(z * y).sum(1)` is that of each pair."""
    found = judged(
        op("SumBackward1", 1, shape=(6,), saved=along(summed), frame=1),
        op("MulBackward0", 2, 7, shape=(6, 4)),
        *normalized(2, 0),
        *normalized(7, 0),
    )

    assert bool(found) == is_wrong


def test_what_is_not_known_is_not_judged() -> None:
    """One factor without a gradient, another norm, vectors of three axes, and a division by a number."""
    product = op("MmBackward0", 1, 1, shape=(6, 6))
    by_number, by_other = op("DivBackward0", 2, None, shape=(6, 4)), op("DivBackward0", 2, 2, shape=(6, 4))

    assert judged(op("MmBackward0", 1, None, shape=(6, 6)), *normalized(1, 0)) == []
    assert judged(product, by_number, leaf("z", 6, 4)) == []
    assert judged(product, by_other, leaf("z", 6, 4)) == []
    assert judged(op("SumBackward1", 1, saved=along(0)), leaf("z", 6, 4)) == []
