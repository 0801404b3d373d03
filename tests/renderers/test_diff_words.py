"""What all reports of a comparison say alike."""

from gradinspect.analyses.diff.records import ChangedRow
from gradinspect.renderers.diff_words import in_order_of_modules


def row(module: str, *, is_outside: bool = False) -> ChangedRow:
    """Make a row of a module."""
    return ChangedRow(kind="changed", module=module, is_outside=is_outside, what="AddBackward0")


def test_modules_are_sorted_by_their_numbers() -> None:
    """Numbers count as numbers, also within a name, however long; what is outside of modules is last."""
    long = "fc" + "9" * 5_000
    names = ["fc10", long, "fc2", "h.10", "h.2", "fc1-12", "fc1", "", "a.b"]
    rows = in_order_of_modules([row("fc0", is_outside=True), *map(row, names)])
    assert [row.module for row in rows] == ["", "a.b", "fc1", "fc1-12", "fc2", "fc10", long, "h.2", "h.10", "fc0"]
