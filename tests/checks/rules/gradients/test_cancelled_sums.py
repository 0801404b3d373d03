"""Sums in which a tensor cancels, on graphs made by hand."""

import pytest
from factories import graph, leaf, op

from gradinspect.checks.facts.backward_calls import BackwardStarts
from gradinspect.checks.findings import Finding
from gradinspect.checks.rules.gradients.cancelled_sums import cancelled_findings
from gradinspect.graph import Frame, Graph, SavedValue

Z, Q = leaf("z", 2), leaf("q", 2)


def findings(recorded: Graph) -> list[Finding]:
    """Ask the rule."""
    return list(cancelled_findings(BackwardStarts(recorded, Frame(file="train.py", line=9))))


def test_a_tensor_that_is_added_and_subtracted_cancels() -> None:
    """Z + (q - z) gives z no gradient; q gets all of it, and needs a loss of its own if that is to change."""
    line = Frame(file="net.py", line=4, code="out = z + (q - z)")
    (found,) = findings(graph(op("AddBackward0", 2, 1, frame=0), op("SubBackward0", 3, 2), Z, Q, frames=(line,)))

    assert found.code == "GI601"
    assert found.subjects == ("z",)
    assert [(place.role, place.line) for place in found.places] == [("zeroed", 4), ("backward", 9)]
    assert found.remedy == (
        "For a straight-through estimator, detach the difference at net.py:4: z + (q - z).detach(). What q is computed "
        "from then needs a loss of its own, as (q - z.detach()).square().mean(). Otherwise use q alone."
    )


def test_without_a_graph_the_other_needs_no_loss() -> None:
    """(hard - soft) + soft, of a comparison."""
    line = Frame(file="net.py", line=4, code="mask = (hard - soft) + soft")
    (found,) = findings(graph(op("AddBackward0", 1, 2, frame=0), op("SubBackward0", None, 2), Z, frames=(line,)))

    assert found.text.startswith("soft is added and subtracted again")
    assert found.remedy.endswith("soft + (hard - soft).detach(). Otherwise use hard alone.")


def test_over_several_lines_no_name_is_known() -> None:
    """Once for each sum, also if longer ones contain it."""
    recorded = graph(
        op("AddBackward0", 1, 5), op("AddBackward0", 3, 2, frame=0), op("SubBackward0", 4, 3), Z, Q, leaf("more", 2),
        frames=(Frame(file="net.py", line=4, code="out = h + diff"),),
    )  # fmt: skip
    (found,) = findings(recorded)

    assert found.text.startswith("A tensor is added and subtracted again")


@pytest.mark.parametrize(
    "recorded",
    [
        graph(op("AddBackward0", None, 1), op("SubBackward0", 2, None), Q),  # z + (q - z.detach())
        graph(op("AddBackward0", 2, 1), op("MulBackward0", 3, None), Z, op("SubBackward0", 4, 2), Q),  # a share of it
        graph(op("SubBackward0", 1, 2), Z, Q),
        graph(op("SubBackward0", 1, 2), op("AddBackward0", 2, 3), Z, Q),  # a sample less its mean
        graph(op("AddBackward0", 1, 1), Z),
        graph(
            op("AddBackward0", 2, 1),
            op("SubBackward0", 3, 2, saved=(SavedValue(name="_saved_alpha", kind="int", value=2),)),
            Z,
            Q,
        ),
    ],
)
def test_what_does_not_cancel(recorded: Graph) -> None:
    """Detached, scaled, or there once only."""
    assert findings(recorded) == []


def test_a_long_chain_ends() -> None:
    """Each sum is looked at from each difference in it, but only so far."""
    count = 3_000
    nodes = [op("SubBackward0", number + 1, count + 1) for number in range(count)]

    assert findings(graph(*nodes, Z, Q)) == []
