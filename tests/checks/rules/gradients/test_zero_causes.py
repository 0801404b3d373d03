"""Why no gradient passes a node, from what stands around it."""

import pytest
from factories import graph, leaf, op

from gradinspect.checks.rules.gradients.zero_causes import length_one_cause
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

    assert (remedy or "").startswith("For one output, use sigmoid") is is_found
    assert (remedy is not None) is is_found


@pytest.mark.parametrize("reader", ["MulBackward0", "BmmBackward0", "MmBackward0"])
def test_weights_that_are_normalized_over_one_element_are_normalized_over_another(reader: str) -> None:
    """The longer dimensions are named, but not the batch if there is another; past views and dropout."""

    def weights(*shape: int) -> str | None:
        return remedy_of(op(reader, 1), op("ViewBackward0", 2), softmax(3, shape, 1), number=2)

    gate = "for a gate between 0 and 1, use sigmoid"
    over = "Normalize over the dimension that the weights are summed over, dimension"
    assert weights(8, 1, 5) == f"{over} 2 (of length 5); {gate}."
    assert weights(8, 1) == f"{over} 0 (of length 8); {gate}."
    assert weights(8, 1, 5, 7) == f"{over} 2 (of length 5) or dimension 3 (of length 7); {gate}."
    assert weights(1, 1) == (f"F{gate[1:]}, or let the layer before it return one score for each thing to weigh.")


def test_what_was_selected_before_is_normalized_before() -> None:
    """As the experts of a mixture are; other readers of a softmax do not weigh with it."""
    selected = remedy_of(op("MulBackward0", 1), softmax(2, (8, 1), 1), op("TopkBackward0", 3, frame=0), number=1)
    summed = remedy_of(op("SumBackward0", 1), softmax(2, (8, 1), 1), op("TopkBackward0", 3), number=1)

    assert (
        selected == "Apply softmax to all scores, before train.py:4 selects some of them, and select among its results."
    )
    assert summed is not None
    assert summed.startswith("For one output, use sigmoid")
