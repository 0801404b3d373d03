"""Masks that leave the padding, as findings."""

from gradinspect.checks.facts.values import InvertedMask
from gradinspect.checks.rules.losses.inverted_masks import mask_findings
from gradinspect.graph import Frame

MADE = Frame(file="tag.py", line=3, code="mask = ids != 0")
USED = Frame(file="tag.py", line=7, code="y, _ = attention(x, x, x, key_padding_mask=mask)")


def test_the_opposite_is_passed_where_the_mask_is_used() -> None:
    """What made it may be used elsewhere."""
    (found,) = mask_findings(InvertedMask(token=0, num_calls=3, made=MADE, used=USED))
    (alone,) = mask_findings(InvertedMask(token=0, num_calls=3, made=USED, used=USED))

    assert found.text.startswith("The mask at tag.py:7, made at tag.py:3, hides all positions but those with the id 0,")
    assert found.remedy == "Pass the opposite of the mask at tag.py:7: ~(mask) in the place of mask."
    assert [(place.role, place.line) for place in found.places] == [("mask", 3), ("used", 7)]
    assert [place.role for place in alone.places] == ["used"]


def test_all_lines_that_use_one_mask_are_one_finding() -> None:
    """And the embedding, whose gradient is zero by that."""
    other = Frame(file="train.py", line=9, code="z = read(h, mask)")
    embedded = Frame(file="train.py", line=2, code="h = table(ids)")
    fact = InvertedMask(token=0, num_calls=3, made=MADE, used=USED, others=(other,), looked_up=embedded)
    (found,) = mask_findings(fact)

    assert [place.role for place in found.places] == ["mask", "used", "used", "embedded"]
    assert f"{USED.file}:{USED.line} and train.py:9: ~(mask)" in found.remedy
