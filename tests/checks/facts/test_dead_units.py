"""Units that are dead, on graphs made by hand."""

import pytest
from factories import graph, leaf, op

from gradinspect.analyses.gradients.observed import GradientNote
from gradinspect.checks.facts.backward_calls import BackwardEnded
from gradinspect.checks.facts.dead_units import zeroed_inside
from gradinspect.graph import Frame, Node


def inside(*nodes: Node, kind: str = "killed", number: int | None = 1) -> list[int]:
    """Return the lines of what lets nothing through inside a network; node 1 is to blame."""
    lines = tuple(Frame(file="net.py", line=10 + place) for place in range(3))
    note = GradientNote(kind=kind, text="", node=number)  # type: ignore[arg-type]
    found = zeroed_inside(BackwardEnded(graph(*nodes, frames=lines), [note, note]))
    assert {place.role for place in found} <= {"zeroed"}
    return [place.line for place in found]


@pytest.mark.parametrize(
    ("reader", "is_inside"),
    [
        ((op("AddmmBackward0", 4, 1, 2), op("TBackward0", 3), leaf("v", 3, 2)), True),
        ((op("MmBackward0", 1, 3), op("ViewBackward0", 3), leaf("v", 3, 2)), True),
        ((op("MmBackward0", 1, 2), op("ViewBackward0", 3), leaf("v", 3, 2)), False),  # a view is no weight
        ((op("MulBackward0", 1, 3), op("ViewBackward0", 3), leaf("v", 3)), False),  # a vector is none
        ((op("SubBackward0", 1, 2), op("TBackward0", None), leaf("v", 3, 2)), False),
        ((op("SumBackward0", 1), op("TBackward0", 3), leaf("v", 3, 2)), False),  # a loss reads no weights
        ((op("MulBackward0", 1, 4), op("TBackward0", 3), leaf("v", 3, 2)), False),  # those before it are others
    ],
)
def test_a_unit_inside_a_network_is_dead(reader: tuple[Node, Node, Node], *, is_inside: bool) -> None:
    """A layer with weights reads what it made; a loss that is zero because its margin is kept has none after it."""
    layer, view, weight = reader
    nodes = layer, op("ReluBackward0", 4, frame=1), view, weight, leaf("w", 3, 3)

    assert inside(*nodes) == [11] * is_inside
    assert inside(*nodes, kind="infected") == []
    assert inside(*nodes, number=None) == []


def test_readers_further_on_count_too() -> None:
    """Past other operators, of which several may read the same."""
    assert inside(
        op("MmBackward0", 2, 4), op("ReluBackward0", 5, frame=1), op("AddBackward0", 3, 1), op("ExpBackward0", 1),
        leaf("v", 3, 2), leaf("w", 3, 3),
    ) == [11]  # fmt: skip
