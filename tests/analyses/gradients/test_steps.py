"""Moves and findings of several calls, from numbers made by hand."""

from factories import gradient_stats as stats

from gradinspect.analyses.gradients.observed import GradientNote, ParameterRow
from gradinspect.analyses.gradients.steps import GradientStep, moves, notes_of_all


def row(name: str, norm: float | None, *, weight: float = 2.0, update: float | None = None) -> ParameterRow:
    """Make one parameter of one call."""
    found = None if norm is None else stats(norm)
    return ParameterRow(node=0, name=name, stats=found, weight_norm=weight, num_added=1, update_norm=update)


def step(number: int, *rows: ParameterRow, findings: tuple[GradientNote, ...] = ()) -> GradientStep:
    """Make one call."""
    return GradientStep(number=number, captured_at=f"backward #{number}", loss=1.0, findings=findings, parameters=rows)


def test_parameters_are_followed_by_name() -> None:
    """In the order first met; two of one name stay apart; where one is missing there is None."""
    steps = [
        step(1, row("w", 1.0), row("x", 3.0), row("x", 4.0)),
        step(2, row("b", None), row("w", 0.5), row("x", 5.0)),
    ]

    assert [(move.name, move.norms) for move in moves(steps)] == [
        ("w", (1.0, 0.5)), ("x", (3.0, 5.0)), ("x", (4.0, None)), ("b", (None, None)),
    ]  # fmt: skip


def test_the_update_is_compared_with_the_weight() -> None:
    """None where there was no update, or where the weight is zero."""
    assert row("w", 1.0, update=0.5).update_ratio == 0.25
    assert row("w", 1.0, weight=0.0, update=0.5).update_ratio is None
    assert row("w", 1.0).update_ratio is None


def test_a_finding_is_told_once() -> None:
    """With the calls it was made in, and with the text of the first."""
    killed = [GradientNote(kind="killed", text=f"#4 got {number}.", node=4, parameters=("w",)) for number in range(3)]
    loss = GradientNote(kind="loss", text="The loss is nan.", node=0)
    steps = [step(7, findings=(killed[0],)), step(8, findings=(loss,)), step(9, findings=(killed[2],))]

    assert [(finding.kind, finding.text) for finding in notes_of_all(steps)] == [
        ("killed", "#4 got 0. In 2 of 3 calls, first in #7."),
        ("loss", "The loss is nan. In 1 of 3 calls, first in #8."),
    ]
