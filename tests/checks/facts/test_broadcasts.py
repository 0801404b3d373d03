"""Shapes that grow by accident."""

import pytest

from gradinspect.checks.facts.broadcasts import Shape, grown_shape, slipped_shape


@pytest.mark.parametrize(
    ("left", "right", "grown"),
    [
        ((8, 1), (8,), (8, 8)),
        ((8,), (8, 1), (8, 8)),
        ((1, 5, 1), (1, 5), (1, 5, 5)),
        ((8, 1), (8, 1), None),
        ((8, 1), (1, 8), None),
        ((8, 4), (4,), None),
        ((8, 1), (4,), None),
        ((8, 8), (8,), None),
        ((1, 1), (1,), None),
        ((1, 8), (8,), None),
        ((0, 1), (0,), None),
        ((), (8, 1), None),
    ],
)
def test_accidental_broadcasting_shows_in_two_shapes(left: Shape, right: Shape, grown: Shape | None) -> None:
    """The same elements, another number of dimensions, and a result that is larger than both."""
    assert grown == grown_shape(left, right)


@pytest.mark.parametrize(
    ("op", "left", "right", "grown"),
    [
        ("sub", (8, 1), (1, 8), (8, 8)),
        ("sub", (8, 1), (8, 4), (8, 4)),
        ("rsub", (8, 1), (8, 4), (8, 4)),
        ("mse_loss", (8, 4), (8, 1), (8, 4)),
        ("sub", (8, 4), (8, 1), None),  # several predictions of one target
        ("sub", (1, 4), (8, 4), None),  # a center
        ("sub", (8, 1), (1, 4), None),
        ("mul", (8, 1), (8, 4), None),
        ("mse_loss", (8, 1), (1, 1), None),
        ("sub", (8, 4), (8, 4), None),
        ("mse_loss", (8, 4), (8, 4), None),
        ("mse_loss", (2, 1), (1, 2), (2, 2)),
        ("mse_loss", (1, 1), (1, 4), None),
        ("mse_loss", (0, 1), (1, 0), None),
        ("mse_loss", (0, 1), (0, 4), None),
        ("mse_loss", (8, 1), (8,), (8, 8)),
    ],
)
def test_shapes_of_equal_length_count_in_few_forms(op: str, left: Shape, right: Shape, grown: Shape | None) -> None:
    """A column of predictions against a row or several columns of targets, and what torch itself warns of."""
    assert grown == slipped_shape(op, (left, right), (True, False))
    assert op != "mse_loss" or slipped_shape(op, (right, left), (False, True)) == grown
    if op != "mse_loss" and left != (8, 1):
        assert slipped_shape(op, (right, left), (False, True)) is None
