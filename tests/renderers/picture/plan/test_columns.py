"""Where a picture that is too high is cut into columns."""

from hypothesis import given
from hypothesis import strategies as st

from gradinspect.analyses.structure.folding import Scope
from gradinspect.renderers.picture.placed import Extent, Rect
from gradinspect.renderers.picture.plan.columns import split_into_columns
from gradinspect.renderers.picture.plan.parts import Box, Part, ScopeEnd, ScopeStart, columns_of, group_between

SCOPE = Scope(kind="module", items=(0,), num_nodes=1, held_bytes=0)


def stacked(heights: list[int]) -> tuple[list[Part], dict[int, Rect]]:
    """Put boxes of some heights below each other."""
    parts: list[Part] = [Box("node", range(place, place + 1)) for place in range(len(heights))]
    rects: dict[int, Rect] = {}
    top = 0.0
    for place, height in enumerate(heights):
        rects[place] = Rect(0, top - height, 100, top)
        top -= height + 10
    return parts, rects


@given(st.lists(st.integers(20, 80), min_size=1, max_size=60), st.integers(100, 700))
def test_columns_are_the_parts_in_order_and_not_higher_than_asked(heights: list[int], height: int) -> None:
    """Each box is in one column, and a column is too high only if it is one box."""
    parts, rects = stacked(heights)
    split = split_into_columns(parts, rects, Extent(900, height))

    assert len(split.columns) <= 1
    for group in split.columns:
        assert [place for run in group for place in run] == list(range(len(parts)))
        for run in group:
            assert len(run) == 1 or rects[run.start].top - rects[run.stop - 1].bottom <= height


def test_columns_are_about_equally_high() -> None:
    """Not full ones and a short one at the end."""
    parts, rects = stacked([30] * 11)
    (group,) = split_into_columns(parts, rects, Extent(900, 390)).columns

    assert [len(run) for run in group] == [6, 5]


def test_what_is_in_a_frame_that_is_too_high_is_cut() -> None:
    """The frame stays whole, around its columns."""
    inside, rects = stacked([30] * 10)
    parts: list[Part] = [ScopeStart(SCOPE, 0), *inside, ScopeEnd()]
    moved = {place + 1: rect for place, rect in rects.items()} | {0: Rect(-8, -400, 108, 20)}
    (group,) = split_into_columns(parts, moved, Extent(900, 260)).columns

    assert [run.start for run in group] == [1, 6]
    assert group[-1].stop == 11


def test_nothing_is_cut_that_fits() -> None:
    """And nothing is drawn of nothing."""
    parts, rects = stacked([30] * 4)

    assert split_into_columns(parts, rects, Extent(900, 150)).columns == ()
    assert split_into_columns([], {}, Extent(900, 150)).columns == ()


def test_the_group_of_two_boxes_in_different_columns() -> None:
    """The outer one, if they are in several."""
    parts, _ = stacked([30] * 6)
    found = columns_of(parts, [(range(3), range(3, 6)), (range(1), range(1, 3))])

    assert found == [{0: 0, 1: 0}, {0: 0, 1: 1}, {0: 0, 1: 1}, {0: 1}, {0: 1}, {0: 1}]
    assert group_between(found[0], found[1]) == 1
    assert group_between(found[0], found[4]) == 0
    assert group_between(found[3], found[4]) is None
