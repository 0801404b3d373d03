"""Scores that a view has mixed up, judged on graphs made by hand."""

import pytest
from factories import graph, leaf, op

from gradinspect.checks.facts.backward_calls import BackwardStarts
from gradinspect.checks.findings import Finding
from gradinspect.checks.rules.losses.scrambled_scores import scrambled_findings
from gradinspect.graph import Frame, ModuleCall

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


@pytest.mark.parametrize(
    ("before", "after", "is_mixed"),
    [
        ((2, 3, 4, 5), (40, 3), True),
        ((2, 3, 6), (12, 3), True),
        ((2, 3, 3), (6, 3), False),  # the last axis may be that of the classes
        ((2, 3, 1, 1), (2, 3), False),
        ((6, 4), (8, 3), False),
        ((2, 1, 4, 5), (40, 1), False),
    ],
)
def test_scores_are_flattened_where_their_classes_are_last(
    before: tuple[int, ...], after: tuple[int, ...], *, is_mixed: bool
) -> None:
    """Scores of [batch, classes, ...] are not."""
    assert [finding.remedy.partition(", move ")[2][:10] for finding in found("ViewBackward0", before, after)] == (
        ["the axis f"] if is_mixed else []
    )


@pytest.mark.parametrize(
    ("class_name", "before", "after", "is_mixed"),
    [
        ("LSTM", (2, 8, 5), (8, 10), True),
        ("GRU", (4, 8, 5), (8, 20), True),
        ("Stack", (2, 8, 5), (8, 10), False),
        ("LSTM", (1, 8, 5), (8, 5), False),
        ("LSTM", (8, 8, 5), (8, 40), False),  # of [batch, directions, features] it is right
        ("LSTM", (8, 2, 5), (8, 10), False),
        ("LSTM", (2, 8, 5), (2, 2, 4, 5), False),
    ],
)
def test_states_of_recurrent_layers(
    class_name: str, before: tuple[int, ...], after: tuple[int, ...], *, is_mixed: bool
) -> None:
    """One row for each sequence is no view of [directions, batch, features]; inside the layer it may be one."""

    def judged(view_module: int | None) -> list[str]:
        recorded = graph(
            op("SumBackward0", 1, shape=()),
            op("ViewBackward0", 2, shape=after, frame=0, module=view_module),
            op("StackBackward0", 3, shape=before, module=0),
            leaf("weight", 4, 4),
            frames=(LINE,),
            modules=(ModuleCall(path="rnn", class_name=class_name),),
        )
        return [finding.code for finding in scrambled_findings(BackwardStarts(recorded))]

    assert judged(None) == (["GI702"] if is_mixed else [])
    assert judged(0) == []
