"""Masks that hide nothing, as findings."""

from gradinspect.checks.facts.axes import AddedMask
from gradinspect.checks.rules.losses.added_masks import added_findings
from gradinspect.graph import Frame

MADE = Frame(file="gat.py", line=3, code="mask = adj > 0")
USED = Frame(file="gat.py", line=7, code="e = e.masked_fill(adj == 0, 1e-9)")


def test_a_fill_and_a_mask_are_two_things() -> None:
    """Both are filled with minus infinity instead."""
    (mask,) = added_findings(AddedMask(num_calls=4, made=MADE, used=USED))
    (fill,) = added_findings(AddedMask(num_calls=4, filled=1e-9, used=USED))

    assert mask.text.startswith("gat.py:7 adds a mask of 0 and 1 to what a softmax gets")
    assert fill.text.startswith("gat.py:7 fills scores with 1e-09 before a softmax gets them, in each of 4 calls.")
    assert "float('-inf')" in mask.remedy
    assert "float('-inf')" in fill.remedy
    assert [[place.line for place in one.places] for one in (mask, fill)] == [[3, 7], [7]]
