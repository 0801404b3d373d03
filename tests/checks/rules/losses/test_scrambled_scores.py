"""Scores that a view has mixed up, judged on graphs made by hand."""

import pytest
from factories import graph, leaf, op

from gradinspect.checks.facts.backward_calls import BackwardStarts
from gradinspect.checks.findings import Finding
from gradinspect.checks.rules.losses.scrambled_scores import scrambled_findings
from gradinspect.graph import Frame

LINE = Frame(file="train.py", line=3, code="loss = F.cross_entropy(scores.view(2, 4, 5), y)")


def found(view: str, before: tuple[int, ...], after: tuple[int, ...]) -> list[Finding]:
    """Judge a loss of scores in one shape, made of another."""
    recorded = graph(
        op("NllLoss2DBackward0", 1, shape=()),
        op("LogSoftmaxBackward0", 2, shape=after),
        op(view, 3, shape=after, frame=0),
        op("AddmmBackward0", 4, shape=before),
        leaf("weight", 4, 4),
        frames=(LINE,),
    )
    return list(scrambled_findings(BackwardStarts(recorded)))


@pytest.mark.parametrize("before", [(2, 5, 4), (2, 5, 3, 4)])
def test_the_last_axis_at_place_1_is_a_mixture(before: tuple[int, ...]) -> None:
    """Of three axes or more, by a view or a reshape."""
    after = (before[0], before[-1], *before[1:-1])
    (finding,) = found("ViewBackward0", before, after)

    assert finding.code == "GI702"
    assert finding.text.startswith(f"train.py:3 makes {list(after)} of {list(before)} by a view")
    assert found("UnsafeViewBackward0", before, after)
    assert found("TransposeBackward0", before, after) == []


@pytest.mark.parametrize(
    ("before", "after"), [((10, 4), (2, 4, 5)), ((2, 4, 4), (2, 4, 4)), ((2, 1, 4), (2, 4, 1)), ((2, 5, 1), (2, 1, 5))]
)
def test_other_shapes_are_not(before: tuple[int, ...], after: tuple[int, ...]) -> None:
    """Those whose elements stay where they are, or that no axis was moved in."""
    assert found("ViewBackward0", before, after) == []
