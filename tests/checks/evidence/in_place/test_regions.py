"""Whether tensors of one storage share elements, against what a write really changes."""

import pytest
import torch

from gradinspect.checks.evidence.in_place.regions import overlaps, region_of

WHOLE = torch.zeros(6, 4)
PARTS = {
    "rows": WHOLE[:3],
    "other rows": WHOLE[3:],
    "columns": WHOLE[:, :2],
    "other columns": WHOLE[:, 2:],
    "every second": WHOLE.view(-1)[::2],
    "the others": WHOLE.view(-1)[1::2],
    "turned": WHOLE.T[1:],
    "one": WHOLE[2, 3],
    "none": WHOLE[:0],
    "none, turned": WHOLE.T[:0],
    "expanded": WHOLE[0, :1].expand(5),
}


@pytest.mark.parametrize("one", PARTS)
@pytest.mark.parametrize("other", PARTS)
def test_overlap_is_what_a_write_changes(one: str, other: str) -> None:
    """Two parts overlap if writing one changes the other."""
    WHOLE.zero_()
    if PARTS[one].numel():
        PARTS[one][...].copy_(torch.ones(())) if one != "expanded" else WHOLE[0, 0].fill_(1)
    changed = bool(PARTS[other].any())

    assert overlaps(region_of(PARTS[one]), region_of(PARTS[other])) == changed


def test_another_dtype_counts_as_overlap_where_the_bytes_meet() -> None:
    """Elements of another size are not compared one by one."""
    bits = WHOLE.view(torch.int16)

    assert overlaps(region_of(WHOLE), region_of(bits))
    assert not overlaps(region_of(WHOLE[3:]), region_of(bits[:3]))
    assert not overlaps(region_of(WHOLE[3:]), region_of(bits[:1]))
    assert not overlaps(region_of(WHOLE.T[:0]), region_of(bits))
