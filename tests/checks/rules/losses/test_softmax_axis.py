"""The axis of a softmax, judged on graphs made by hand."""

import pytest
from factories import graph, leaf, op

from gradinspect.checks.facts import BackwardStarts
from gradinspect.checks.findings import Finding
from gradinspect.checks.rules.losses.softmax_axis import axis_findings
from gradinspect.graph import Frame, Graph, Node, SavedValue

LINE = Frame(file="train.py", line=3, code="p = torch.log_softmax(model(x), dim=0)")


def softmax(name: str, after: int, shape: tuple[int, ...], dim: int) -> Node:
    """Make a softmax over one axis."""
    return op(name, after, shape=shape, frame=0, saved=(SavedValue(name="_saved_dim", kind="int", value=dim),))


def found(*nodes: Node) -> list[Finding]:
    """Judge a chain that ends in a weight."""
    recorded: Graph = graph(*nodes, leaf("weight", 4, 4), frames=(LINE,))
    return list(axis_findings(BackwardStarts(recorded)))


@pytest.mark.parametrize("dim", [0, -2, 2**64 - 2])
def test_a_softmax_over_the_batch(dim: int) -> None:
    """Whatever way the axis is written."""
    (finding,) = found(
        op("NllLossBackward0", 1, shape=()),
        softmax("LogSoftmaxBackward0", 2, (8, 4), dim),
        op("AddmmBackward0", 3, shape=(8, 4)),
    )

    assert "runs over axis 0, the batch, of [8, 4]" in finding.text
    assert finding.remedy == "Pass dim=1 at train.py:3."


def test_a_softmax_over_one_column() -> None:
    """Its result goes through arithmetic with constants into a mean."""
    (finding,) = found(
        op("MeanBackward0", 1, shape=()),
        op("PowBackward0", 2, shape=(8,)),
        op("SubBackward0", 3, None, shape=(8,)),
        op("SqueezeBackward1", 4, shape=(8,)),
        softmax("SoftmaxBackward0", 5, (8, 1), 1),
        op("AddmmBackward0", 6, shape=(8, 1)),
    )

    assert "every output is exactly 1" in finding.text


@pytest.mark.parametrize(
    "nodes",
    [
        (op("NllLossBackward0", 1, shape=()), softmax("LogSoftmaxBackward0", 2, (8, 4), 1), op("AddmmBackward0", 3)),
        (
            op("NllLossBackward0", 1, shape=()),
            op("ViewBackward0", 2, shape=(24, 4)),
            softmax("LogSoftmaxBackward0", 3, (8, 3, 4), 2),
            op("ViewBackward0", 4, shape=(8, 3, 4)),
        ),
        (op("MseLossBackward0", 1, shape=()), softmax("SoftmaxBackward0", 2, (8, 4), 0)),
        (
            op("SumBackward1", 1, shape=(5,)),
            op("MulBackward0", 2, None, shape=(8, 5)),
            softmax("SoftmaxBackward0", 3, (8, 1), 0),
            op("AddmmBackward0", 4, shape=(8, 1)),
        ),
        (
            op("MeanBackward0", 1, shape=()),
            op("BmmBackward0", 2, 3, shape=(8, 1, 5)),
            softmax("SoftmaxBackward0", 3, (8, 1, 1), 2),
        ),
    ],
)
def test_the_axis_of_the_classes_or_of_a_set_is_right(nodes: tuple[Node, ...]) -> None:
    """Classes on axis 1 or moved there, a learned matrix, pooling over a set, attention to one key."""
    assert found(*nodes) == []
