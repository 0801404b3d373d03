"""Which value differs first."""

import math

import pytest
from factories import graph, leaf, op
from msgspec.structs import replace

from gradinspect.analyses.diff.comparison import diff_graphs
from gradinspect.analyses.diff.records import ValueDiff
from gradinspect.analyses.diff.values import Tolerance, distance
from gradinspect.graph import Fingerprint, Graph, NodeValues
from gradinspect.storage import decode_graph, encode_graph


def print_of(norm: float, bad: int = 0) -> Fingerprint:
    """Make the fingerprint of one element."""
    text = f"{norm}/{bad}"
    return Fingerprint(
        norm=norm, mean=norm, low=norm, high=norm, num_nonfinite=bad, digest=text, sketch=text, projections=(norm,)
    )


def valued(*, outputs: dict[int, float], gradients: dict[int, float]) -> Graph:
    """Make a chain of three nodes with values 1 but for some."""
    made = graph(op("SumBackward0", 1), op("ExpBackward0", 2), op("MulBackward0", 3), leaf("w", 2, 3))
    values = tuple(
        NodeValues(
            node=node,
            outputs=(print_of(outputs.get(node, 1.0)),),
            incoming=(print_of(gradients.get(node, 1.0)),),
            order=node,
        )
        for node in range(4)
    )
    return replace(made, values=values)


def compared(
    outputs: dict[int, float] | None = None,
    gradients: dict[int, float] | None = None,
    *,
    absolute: float = 0.0,
    relative: float | None = None,
) -> ValueDiff:
    """Compare with a graph whose values are all 1."""
    plain = valued(outputs={}, gradients={})
    other = valued(outputs=outputs or {}, gradients=gradients or {})
    values = diff_graphs(plain, other, frozenset(), Tolerance(absolute, relative)).values
    assert values is not None
    return values


def test_the_first_of_each_direction() -> None:
    """The forward pass begins at the leaves, backward at the root."""
    found = compared({0: 2.0, 1: 2.0}, {1: 2.0, 2: 2.0, 3: 2.0})

    assert found.first_forward is not None
    assert found.first_forward.node_after == 1
    assert found.first_backward is not None
    assert found.first_backward.node_after == 1
    assert (found.num_outputs, found.num_gradients, found.num_compared) == (2, 3, 8)


def test_a_parameter_is_named_apart() -> None:
    """What went into the forward pass is no result of it."""
    found = compared({3: 1.5})

    assert [one.name for one in found.parameters] == ["w"]
    assert found.first_forward is None
    assert not found.is_empty


@pytest.mark.parametrize(
    ("absolute", "relative", "is_empty"), [(0, None, False), (0, 0.01, True), (0.01, None, True), (0, 1e-4, False)]
)
def test_tolerances(absolute: float, relative: float | None, is_empty: bool) -> None:
    """Relative to the larger norm, or in itself."""
    assert compared({1: 1.001}, absolute=absolute, relative=relative).is_empty is is_empty


def test_rounding_depends_on_the_dtype() -> None:
    """By default a float32 may differ in its last places; with a tolerance of 0 it may not."""
    assert compared({1: 1.000001}).num_rounded == 1
    assert not compared({1: 1.000001}, relative=0.0).is_empty


def test_values_can_be_ignored() -> None:
    """Or be missing: then they are not compared."""
    plain, other = valued(outputs={}, gradients={}), valued(outputs={1: 2.0}, gradients={})

    assert diff_graphs(plain, other, frozenset({"values"})).is_empty
    assert diff_graphs(plain, replace(other, values=())).values is None


def test_what_is_not_finite_is_far() -> None:
    """From everything but itself."""
    assert distance(print_of(math.inf, bad=1), print_of(1.0)).relative == math.inf
    assert distance(print_of(math.inf, bad=1), print_of(math.inf, bad=1)).relative == 0


def test_values_survive_a_file() -> None:
    """Beside the graph, not finite ones too."""
    made = valued(outputs={1: math.inf}, gradients={2: -math.inf})

    assert decode_graph(encode_graph(made, compressed=True), "run.json.gz") == made
    assert b"values" not in encode_graph(replace(made, values=()), compressed=False)
