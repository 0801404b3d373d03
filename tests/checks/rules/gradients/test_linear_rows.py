"""Models that are a row of linear layers, on graphs made by hand."""

from itertools import pairwise

import pytest
from factories import graph, leaf, op

from gradinspect.checks.facts.backward_calls import BackwardEnded
from gradinspect.checks.rules.gradients.linear_rows import linear_findings
from gradinspect.graph import Frame, Graph, Node


def row(*sizes: int, between: str = "ViewBackward0", other: Node | None = None) -> Graph:
    """Make layers of these sizes, with a node between two, and perhaps one more leaf."""
    layers = list(pairwise(sizes))[::-1]
    nodes = [op("MeanBackward0", 1, None if other is None else 4 * len(layers))]
    for number, (before, after) in enumerate(layers):
        at = 4 * number + 1
        is_first = number == len(layers) - 1
        nodes += [op("MmBackward0", None if is_first else at + 3, at + 1), op("TBackward0", at + 2)]
        nodes += [leaf(f"{len(layers) - number - 1}.weight", after, before)]
        nodes += [] if is_first else [op(between, at + 4)]
    return graph(*nodes, *(() if other is None else (other,)))


@pytest.mark.parametrize(
    ("recorded", "is_found"),
    [
        (row(4, 8, 8, 2), True),
        (row(4, 8, 2, 2), True),
        (row(2, 8, 8, 8, 1), True),
        (row(4, 8, 2), False),
        (row(4, 8, 8, 2, between="ReluBackward0"), False),
        (row(4, 8, 8, 2, between="MulBackward0"), False),
        (row(12, 8, 3, 8, 12), False),
        (row(4, 8, 8, 2, other=leaf("scale", 2)), False),
        (graph(op("MeanBackward0", 1), leaf("weight", 2, 2)), False),
    ],
)
def test_a_model_without_an_activation_function(recorded: Graph, *, is_found: bool) -> None:
    """Of three layers or more, none of which is narrower than both ends, with all parameters in them."""
    found = linear_findings(BackwardEnded(recorded, ()))

    assert [one.code for one in found] == ["GI606"] * is_found


def test_the_sizes_are_told() -> None:
    """From the data to the loss, with the line of the first layer."""
    made = Frame(file="net.py", line=4)
    (finding,) = linear_findings(BackwardEnded(row(4, 8, 6, 2), (), made_at=lambda _node: made))

    assert finding.text.startswith(
        "3 linear layers follow each other without an activation function (4 -> 8 -> 6 -> 2)"
    )
    assert finding.subjects == ("0.weight", "1.weight", "2.weight")
    assert (finding.remedy or "").endswith("behind each layer but the last: the first is made at net.py:4.")
