"""Views in place of a transpose, as findings."""

from gradinspect.checks.facts.axes import FlattenedApart, MixedPixels, MovedByView
from gradinspect.checks.rules.axes.moved_axes import flattened_findings, mixed_findings, moved_findings
from gradinspect.graph import Frame

FIRST = Frame(file="train.py", line=3, code="first")
USED = Frame(file="train.py", line=7, code="used")


def test_heads_are_split_before_they_are_moved() -> None:
    """And moved back before they are merged."""
    split = MovedByView(kind="split", before=(4, 6, 10), after=(4, 2, 6, 5), num_calls=6, viewed=USED)
    merged = MovedByView(kind="merged", before=(4, 2, 6, 5), after=(4, 6, 10), num_calls=6, viewed=USED)
    moved = MovedByView(kind="moved", before=(4, 8, 6, 3), after=(4, 3, 8, 6), num_calls=6, viewed=USED)
    (first,), (second,), (third,) = map(list, map(moved_findings, (split, merged, moved)))

    assert first.code == second.code == third.code == "GI702"
    assert first.text.startswith("train.py:7 makes [4, 2, 6, 5] of [4, 6, 10] by a view, in each of 6 calls.")
    assert "x.view(*x.shape[:-1], 2, 5).transpose(-3, -2)" in first.remedy
    assert "x.transpose(-3, -2).flatten(-2)" in second.remedy
    equal = MovedByView(kind="moved", before=(8, 8, 6), after=(8, 6, 8), num_calls=6, viewed=USED)
    (fourth,) = moved_findings(equal)
    assert fourth.remedy == "At train.py:7, use permute, which moves the elements."
    assert third.remedy == "At train.py:7, use permute(0, 3, 1, 2) instead, which moves the elements."


def test_a_line_is_named_once_where_a_loss_flattens_both_sides() -> None:
    """The other lines are those of the views."""
    there = FlattenedApart(first=(6, 4), second=(4, 6), num_calls=2, scores=USED, targets=USED, used=USED)
    (found,) = flattened_findings(there)
    (apart,) = flattened_findings(FlattenedApart(first=(6, 4), second=(4, 6), num_calls=2, scores=FIRST, used=USED))

    assert found.text.startswith("The scores were flattened from [6, 4] and the targets from [4, 6]")
    assert [(place.role, place.line) for place in found.places] == [("loss", 7)]
    assert [(place.role, place.line) for place in apart.places] == [("scores", 3), ("loss", 7)]


def test_the_line_of_mixed_pixels_is_named_if_it_is_known() -> None:
    """The source may have several that reshape."""
    (known,) = mixed_findings(MixedPixels(shape=(3, 20, 28), num_calls=12, viewed=FIRST, used=USED))
    (other,) = mixed_findings(MixedPixels(shape=(3, 20, 28), num_calls=12, used=USED))

    assert "are [3, 20, 28], but their values lie as those of [20, 28, 3] do: in each of 12 calls" in known.text
    assert known.remedy.startswith(
        "Move the channels where the images get this shape, at train.py:3: by transpose(2, 0"
    )
    assert other.remedy.startswith("Move the channels where the images get this shape: by transpose(2, 0, 1)")
    assert [place.role for place in other.places] == ["convolved"]
