"""Whether tensors of one storage share elements, against what a write really changes."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gradinspect.checks.evidence.in_place.regions import Region, overlaps, part_of, region_of

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
    """Elements of another size are compared byte by byte."""
    bits = WHOLE.view(torch.int16)

    assert overlaps(region_of(WHOLE), region_of(bits))
    assert not overlaps(region_of(WHOLE[3:]), region_of(bits[:3]))
    assert not overlaps(region_of(WHOLE[3:]), region_of(bits[:1]))
    assert not overlaps(region_of(WHOLE.T[:0]), region_of(bits))


@settings(deadline=None)
@given(st.data())
def test_overlap_of_any_two_regions(data: st.DataObject) -> None:
    """It is what marking their elements shows, whatever the strides."""
    strides = st.one_of(st.sampled_from([0, 1, 2, 4, 12]), st.integers(0, 7))
    dims = st.lists(st.tuples(st.integers(0, 4), strides), max_size=3)
    regions = [
        Region(4, data.draw(st.integers(0, 9)), tuple(size for size, _ in chosen), tuple(step for _, step in chosen))
        for chosen in (data.draw(dims), data.draw(dims))
    ]
    covered = [
        set(torch.arange(200).as_strided(one.shape, one.strides, one.offset).flatten().tolist()) for one in regions
    ]

    assert overlaps(*regions) == bool(covered[0] & covered[1])


INDEX = st.one_of(
    st.integers(-3, 2),
    st.slices(3).filter(lambda one: (one.step or 1) > 0),
    st.none(),
    st.sampled_from([torch.tensor(1), torch.tensor(-2)]),
)


@given(st.lists(INDEX, max_size=3), st.booleans())
def test_a_part_is_what_torch_selects(index: list[Any], has_ellipsis: bool) -> None:
    """By integers, slices, new dimensions and an ellipsis, with which dimensions may be left out."""
    whole = torch.zeros(4, 5, 6)[1:, 1:4, ::2]
    chosen = (*index[:1], ..., *index[1:]) if has_ellipsis else tuple(index)
    part = whole[chosen]
    found = part_of(region_of(whole), chosen)

    assert found is not None
    assert (found.offset if part.numel() else 0) == (part.storage_offset() if part.numel() else 0)
    assert found.num_bytes == part.nbytes
    assert not part.numel() or set_of(found) == set_of(region_of(part))


def set_of(region: Region) -> set[int]:
    """List the elements of a region."""
    return set(torch.arange(120).as_strided(region.shape, region.strides, region.offset).flatten().tolist())


@pytest.mark.parametrize(
    "index", [[0, 1], True, torch.tensor([0]), torch.tensor(True), (0, [1]), slice(torch.tensor(1), None), 9, (0, 0, 0)]
)
def test_other_indices_are_not_read(index: object) -> None:
    """Lists, booleans, masks; and what is outside."""
    assert part_of(region_of(WHOLE), index) is None
