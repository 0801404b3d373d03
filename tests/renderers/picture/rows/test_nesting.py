"""Frames of module calls in pictures that are too large for Graphviz."""

from itertools import combinations, pairwise

import pytest
from factories import graph, leaf, op, residual_blocks
from hypothesis import given, settings
from strategies import examples, graphs

from gradinspect.analyses.structure.folding import Scope, node_ids
from gradinspect.graph import Graph, ModuleCall
from gradinspect.renderers.picture.plan.drawing import Drawing, plan_drawing
from gradinspect.renderers.picture.plan.parts import DrawOptions
from gradinspect.renderers.picture.rows.layout import Room, RowArrow
from gradinspect.renderers.picture.rows.nesting import MAX_LEVELS, Nested, ScopeRoom, lay_out_nested

BOX = Room(50, 50, 30)
TITLE = 80.0


def nested(whole: Graph) -> tuple[Drawing, Nested]:
    """Lay out all of a graph with boxes of one size."""
    drawing = plan_drawing(whole, DrawOptions(full=True, max_boxes=None))
    arrows = [RowArrow(arrow.tail, arrow.head) for arrow in (*drawing.arrows, *drawing.references)]
    return drawing, lay_out_nested(drawing.parts, [BOX] * len(drawing.boxes), arrows, title_width)


def title_width(_scope: Scope) -> float:
    """Give each title the same room."""
    return TITLE


def room(left: float, top: float, width: float, height: float) -> tuple[float, float, float, float]:
    """Return the corners of a rectangle."""
    return left, top, left + width, top + height


def are_apart(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    """Return whether two rectangles share no point inside."""
    return one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


def is_inside(inner: tuple[float, ...], outer: tuple[float, ...]) -> bool:
    """Return whether a rectangle is within another."""
    return inner[0] >= outer[0] and inner[1] >= outer[1] and inner[2] <= outer[2] and inner[3] <= outer[3]


@settings(max_examples=examples(60), deadline=None)
@given(graphs())
def test_a_frame_has_its_own_boxes_and_no_others(whole: Graph) -> None:
    """Each box and each inner frame is wholly in the frames around it and apart from every other."""
    drawing, layout = nested(whole)
    frames = [(node_ids(frame.scope), room(*frame[2:])) for frame in layout.frames]
    rooms = [room(*place, BOX.width, BOX.height) for place in layout.places]
    boxes = [(box.ids, place) for box, place in zip(drawing.boxes, rooms, strict=True)]

    for (ids, one), (other_ids, other) in combinations([*frames, *boxes], 2):
        if set(other_ids) <= set(ids):
            assert is_inside(other, one) or is_inside(one, other)
        else:
            assert are_apart(one, other)


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(graphs())
def test_a_line_leads_down_from_its_tail_to_its_head(whole: Graph) -> None:
    """Through all frames on the way; what is no line is a reference."""
    drawing, layout = nested(whole)

    for arrow, line in zip((*drawing.arrows, *drawing.references), layout.lines, strict=True):
        if line is not None:
            left, top = layout.places[arrow.tail]

            assert line[0] == (left + BOX.left, top + BOX.height)
            assert line[-1] == (layout.places[arrow.head][0] + BOX.left, layout.places[arrow.head][1])
            assert all(above[1] <= below[1] for above, below in pairwise(line))


def test_blocks_are_below_each_other_and_connected() -> None:
    """The way through three residual blocks, and around each body, is drawn without a reference."""
    _, layout = nested(residual_blocks(3))
    blocks = [frame for frame in layout.frames if frame.level == 1]

    assert [frame.level for frame in layout.frames] == [0, 1, 1, 1]
    assert len({frame.left for frame in blocks}) == 1
    assert None not in layout.lines


def test_a_title_has_room() -> None:
    """A frame is at least as wide as its title."""
    _, layout = nested(residual_blocks(1))

    assert all(frame.width >= TITLE for frame in layout.frames)


def test_very_deep_modules_share_the_innermost_frame() -> None:
    """A thousand modules inside of each other get some frames, and nothing is lost."""
    depth = 1000
    calls = tuple(
        ModuleCall(path=".".join(["m"] * place), class_name="M", parent=place - 1 if place else None)
        for place in range(depth)
    )
    whole = graph(
        op("AddBackward0", 1, module=0), op("ExpBackward0", 2, module=depth - 1),
        op("SinBackward0", 3, module=depth - 1), leaf("w", 3), modules=calls,
    )  # fmt: skip
    drawing, layout = nested(whole)

    assert len(layout.frames) == MAX_LEVELS
    assert len(layout.places) == len(drawing.boxes) == 3
    assert isinstance(layout.frames[0], ScopeRoom)
