"""What is too wide for a picture is drawn with some of it."""

import pytest
from factories import graph, leaf, op
from hypothesis import given
from strategies import graphs

from gradinspect.graph import Graph, ModuleCall
from gradinspect.renderers.picture.dot.document import render_dot
from gradinspect.renderers.picture.picture import draw
from gradinspect.renderers.picture.plan.drawing import Drawing, plan_drawing
from gradinspect.renderers.picture.plan.fans import FIRST_SHOWN, LAST_SHOWN, MAX_FAN, fold_fans
from gradinspect.renderers.picture.plan.parts import Box, DrawOptions, ScopeEnd, ScopeStart

KINDS = ("SinBackward0", "ExpBackward0", "MulBackward0", "TanhBackward0", "CosBackward0")


def fan(count: int) -> Graph:
    """Make a node with many inputs that are too different to fold."""
    names = [KINDS[(number * number + number // 7) % len(KINDS)] for number in range(count)]
    inputs = (op(name, count + 1, shape=(2,) * (1 + number % 11)) for number, name in enumerate(names))
    return graph(op("CatBackward0", *range(1, count + 1)), *inputs, leaf("w", 3))


def users(count: int) -> Graph:
    """Make a chain in which each node also uses one and the same."""
    names = [KINDS[(number * number + number // 7) % len(KINDS)] for number in range(count)]
    return graph(
        *(op(name, number + 1, count) for number, name in enumerate(names)), op("SinBackward0", count + 1), leaf("w", 3)
    )


def assert_each_node_is_somewhere(drawing: Drawing, record: Graph) -> None:
    """Each node is in one box, boxes are in id order, and scopes are closed as they were opened."""
    ids = [node_id for box in drawing.boxes for node_id in box.ids]
    level = 0
    for part in drawing.parts:
        level += isinstance(part, ScopeStart) - isinstance(part, ScopeEnd)
        assert level >= 0

    assert ids == [number for number, node in enumerate(record.nodes) if node.kind != "accumulate_grad"]
    assert level == 0


def test_the_middle_of_a_wide_fan_is_one_box() -> None:
    """Some inputs from each end are drawn, and a note says how many are not, and why."""
    record = fan(MAX_FAN + 100)
    drawing = plan_drawing(record, DrawOptions())

    assert_each_node_is_somewhere(drawing, record)
    assert len(drawing.boxes) == 1 + FIRST_SHOWN + 1 + LAST_SHOWN
    assert drawing.notes == (
        f"{MAX_FAN + 100 - FIRST_SHOWN - LAST_SHOWN} nodes not drawn: limit is {MAX_FAN} inputs per node",
    )


def test_a_fan_of_modules_keeps_its_frames() -> None:
    """What is left out begins and ends outside of every frame that is drawn."""
    plain = fan(3 * MAX_FAN)
    calls = tuple(ModuleCall(path=f"tower{number}", class_name=f"Tower{number % 7}") for number in range(MAX_FAN))
    nodes = [plain.nodes[0]]
    for number in range(MAX_FAN):
        first = 1 + 3 * number
        name = KINDS[number % 5]
        nodes += [op(name, first + 1, module=number), op("AbsBackward0", first + 2, module=number)]
        nodes += [op(KINDS[number % 3], 3 * MAX_FAN + 1, module=number, shape=(number,))]
    cat = op("CatBackward0", *range(1, 3 * MAX_FAN + 1, 3), *range(2, 3 * MAX_FAN + 1, 3))
    record = graph(cat, *nodes[1:], plain.nodes[-1], modules=calls)
    drawing = plan_drawing(record, DrawOptions(depth=1))

    assert_each_node_is_somewhere(drawing, record)
    assert sum(box.kind == "cut" for box in drawing.boxes) == 1
    assert len(drawing.boxes) < MAX_FAN


def test_all_is_drawn_where_all_was_asked_for() -> None:
    """DOT text has no layout to wait for."""
    assert render_dot(fan(MAX_FAN + 1), DrawOptions(full=True, max_boxes=None)).count("SinBackward0") > 1
    assert "not drawn" not in render_dot(fan(MAX_FAN + 1), DrawOptions(full=True, max_boxes=None))


def test_an_svg_of_all_is_drawn_in_rows() -> None:
    """`--full` leaves nothing out: what Graphviz is not asked for is drawn by us."""
    picture = draw(fan(MAX_FAN + 1), "svg", DrawOptions(full=True))

    assert picture.notes == ("too large for Graphviz: drawn in rows",)
    assert picture.content.count(b'<g id="n') == MAX_FAN + 2


def test_many_users_of_one_node_say_where_they_lead() -> None:
    """Only the nearest have an arrow; each edge is an arrow or a word at its tail."""
    record = users(200)
    options = DrawOptions(full=True, max_boxes=None)
    drawing = plan_drawing(record, options)
    heads = [arrow.head for arrow in drawing.arrows]

    assert heads.count(200) == 5
    assert sum(arrow.head == 200 for arrow in drawing.references) == 196  # the last of the chain has two edges to it
    assert len(drawing.arrows) + len(drawing.references) == 2 * 200  # as many as edges
    assert "#8594; #200 SinBackward0" in render_dot(record, options)


def test_frames_around_each_other_are_few() -> None:
    """A module that calls itself a thousand times deep is drawn to some depth, and a note says so."""
    calls = tuple(ModuleCall(path=f"m{n}", class_name=f"M{n}", parent=n - 1 if n else None) for n in range(1000))
    record = graph(*(op("SinBackward0", n + 1, module=n) for n in range(1000)), leaf("w", 3), modules=calls)
    drawing = plan_drawing(record, DrawOptions(depth=1000))

    assert sum(isinstance(part, ScopeStart) for part in drawing.parts) == 40
    assert drawing.notes == ("folded to depth 40: limit is 40 nested frames",)


def test_many_edges_to_one_node_are_one_arrow() -> None:
    """`torch.stack([x] * 1000)` is one arrow with a number."""
    record = graph(op("StackBackward0", *[1] * 1000), op("SinBackward0", 2), leaf("w", 3))

    assert [(arrow.num_edges, arrow.position) for arrow in plan_drawing(record, DrawOptions()).arrows] == [(1000, None)]


@pytest.mark.parametrize("record", [fan(2000), users(1000)], ids=["inputs", "users"])
def test_a_picture_of_what_is_wide_is_drawn_at_once(record: Graph) -> None:
    """Graphviz is not asked for what takes it minutes: the first try gives a picture."""
    notes = draw(record, "svg").notes

    assert not any("again" in note for note in notes)


@pytest.mark.slow
@given(graphs())
def test_small_graphs_stay_as_they_are(record: Graph) -> None:
    """There is nothing to leave out."""
    parts = plan_drawing(record, DrawOptions()).parts

    assert fold_fans(record, parts) == (list(parts), 0)
    assert all(isinstance(part, Box | ScopeStart | ScopeEnd) for part in parts)
