"""Why no gradient passes a node, from what stands around it."""

import pytest
from factories import graph, leaf, op

from gradinspect.checks.facts.backward_calls import BackwardEnded, LeafValues
from gradinspect.checks.rules.gradients.zero_causes import dead_unit_cause, length_one_cause
from gradinspect.graph import Frame, Graph, Node, SavedValue

LINE = Frame(file="train.py", line=4, code="scores.topk(1)")


def softmax(after: int | None, shape: tuple[int, ...], dim: int, name: str = "SoftmaxBackward0") -> Node:
    """Make a softmax over a dimension."""
    return op(name, after, shape=shape, saved=(SavedValue(name="_saved_dim", kind="int", value=dim),))


def remedy_of(*nodes: Node, number: int = 0) -> str | None:
    """Return what is advised for one node of a chain."""
    recorded: Graph = graph(*nodes, leaf("w", 3), frames=(LINE,))
    cause = length_one_cause(recorded, number)
    return None if cause is None else cause.remedy


@pytest.mark.parametrize(
    ("node", "is_found"),
    [
        (softmax(1, (8, 1), 1), True),
        (softmax(1, (8, 1), -1), True),
        (softmax(1, (1, 8), 0, "LogSoftmaxBackward0"), True),
        (softmax(1, (8, 2), 1), False),
        (softmax(1, (8, 1), 0), False),
        (softmax(1, (8, 1), 5), False),
        (softmax(1, (8, 1), 1, "SigmoidBackward0"), False),
        (op("SoftmaxBackward0", 1, shape=(8, 1)), False),  # of an unknown dimension
    ],
)
def test_a_softmax_over_one_element_lets_nothing_through(node: Node, is_found: bool) -> None:
    """Its result is the same for every input."""
    remedy = remedy_of(node)

    assert (remedy or "").startswith("For one value between 0 and 1, use sigmoid") is is_found
    assert (remedy is not None) is is_found


@pytest.mark.parametrize("reader", ["MulBackward0", "BmmBackward0", "MmBackward0"])
def test_weights_that_are_normalized_over_one_element_are_normalized_over_another(reader: str) -> None:
    """The longer dimensions are named, but not the batch if there is another; past views and dropout."""

    def weights(*shape: int) -> str | None:
        return remedy_of(op(reader, 1), op("ViewBackward0", 2), softmax(3, shape, 1), number=2)

    gate = "for a gate between 0 and 1, use sigmoid"
    over = "Normalize over the dimension that the weights are summed over, dimension"
    assert weights(8, 1, 5) == f"{over} 2 (of length 5); {gate}."
    assert weights(8, 1) == (
        "Does it weigh the 8 of dimension 0, or is it a gate? To weigh, normalize over that. For a gate between 0 and "
        "1, use sigmoid."
    )
    assert weights(8, 1, 5, 7) == f"{over} 2 (of length 5) or dimension 3 (of length 7); {gate}."
    assert weights(1, 1) == (
        "Does it weigh several things, or is it a gate? To weigh, let the layer before it return a score for each. For "
        "a gate between 0 and 1, use sigmoid."
    )


def test_what_was_selected_before_is_normalized_before() -> None:
    """As the experts of a mixture are; other readers of a softmax do not weigh with it."""
    selected = remedy_of(op("MulBackward0", 1), softmax(2, (8, 1), 1), op("TopkBackward0", 3, frame=0), number=1)
    summed = remedy_of(op("SumBackward0", 1), softmax(2, (8, 1), 1), op("TopkBackward0", 3), number=1)

    assert (
        selected == "Apply softmax to all scores, before train.py:4 selects some of them, and select among its results."
    )
    assert summed is not None
    assert summed.startswith("For one value between 0 and 1, use sigmoid")


def test_only_what_keeps_the_values_is_passed_on_the_way_to_a_product() -> None:
    """As of a row that is put somewhere; what a function makes of the weights are others."""
    weights, product = softmax(3, (8, 1, 5), 1), op("MulBackward0", 1)
    passed, changed = (
        remedy_of(product, op(name, 2), weights, op("AddmmBackward0", 4), number=2)
        for name in ("ScatterBackward0", "ExpBackward0")
    )

    assert passed is not None
    assert passed.startswith("Normalize over the dimension that the weights are summed over, dimension 2")
    assert changed is not None
    assert changed.startswith("For one value between 0 and 1, use sigmoid")


WEIGHT, BIAS, LAYER = 2, 3, Frame(file="net.py", line=12)


def dead_unit(
    values: LeafValues | None, *, layer: str = "AddmmBackward0", shape: tuple[int, ...] = (4,), name: str | None = "b"
) -> tuple[str, str] | None:
    """Explain the ReLU after a layer by the values of its bias: why, and what to do."""
    recorded = graph(
        op("ReluBackward0", 1), op(layer, None, WEIGHT, BIAS), leaf("w", 4, 4), leaf(name, *shape), frames=(LINE,)
    )
    cause = dead_unit_cause(BackwardEnded(recorded, (), values_of={BIAS: values}.get), 0)
    assert cause is None or [(place.role, place.line) for place in cause.places] == [("bias", 12)]
    return None if cause is None else (cause.why, cause.remedy)


@pytest.mark.parametrize("layer", ["AddmmBackward0", "ConvolutionBackward0", "AddBackward0"])
@pytest.mark.parametrize(("name", "bias"), [("b", "bias b was"), (None, "bias was")])
def test_a_bias_that_was_set_below_zero_explains_a_dead_unit(layer: str, name: str | None, bias: str) -> None:
    """With its line and its highest value."""
    assert dead_unit(LeafValues("fill", LAYER, lambda: -0.5), layer=layer, name=name) == (
        f"Every element is negative: the unit is dead. Its {bias} set at net.py:12, and is at most -0.5.",
        "Use leaky_relu or gelu, or set the bias to 0 at net.py:12.",
    )


@pytest.mark.parametrize(
    "values",
    [
        None,
        LeafValues("uniform", LAYER, lambda: -0.5),
        LeafValues("fill", LAYER, lambda: 0.0),
        LeafValues("fill", None, lambda: -0.5),
    ],
)
def test_other_biases_explain_nothing(values: LeafValues | None) -> None:
    """Drawn at random, not below zero, set at an unknown line, or not known."""
    assert dead_unit(values) is None


def test_only_the_bias_of_a_layer_explains_a_dead_unit() -> None:
    """A matrix is none, and a product has none; the input of the unit may need no gradient."""
    low = LeafValues("fill", LAYER, lambda: -0.5)
    alone = graph(op("ReluBackward0", None))

    assert dead_unit(low, shape=(4, 4)) is None
    assert dead_unit(low, shape=()) is None
    assert dead_unit(low, layer="MulBackward0") is None
    assert dead_unit_cause(BackwardEnded(alone, ()), 0) is None
