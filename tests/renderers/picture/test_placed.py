"""Titles of frames in bitmaps and PDF."""

import pytest
from factories import graph, leaf, op, residual_blocks

from gradinspect.graph import ModuleCall
from gradinspect.renderers.picture.dot.document import frame_titles, write_dot
from gradinspect.renderers.picture.graphviz import LayoutError, draw_placed, find_engine, lay_out
from gradinspect.renderers.picture.placed import (
    CLUSTER,
    TITLE_AT,
    mirrored,
    rects_of,
    size_in_points,
    with_titles_above,
)
from gradinspect.renderers.picture.plan.drawing import plan_drawing
from gradinspect.renderers.picture.plan.parts import DrawOptions

ENGINES = [find_engine(path=""), find_engine()]  # graphviz-pure, and dot where it is installed
HOSTILE = 'subgraph cluster_0 {\nlp="1,1" bb="0,0,1,1"'


@pytest.mark.parametrize("engine", ENGINES, ids=["pure", "dot"])
def test_titles_are_drawn_after_the_arrows_where_they_were(engine: object) -> None:
    """Each title is a node at the place of the first, on the color of its frame, after the last arrow."""
    whole, options = residual_blocks(5), DrawOptions(depth=2)
    drawing = plan_drawing(whole, options)
    placed = lay_out(write_dot(whole, drawing, options), "dot", engine, time_limit_s=30).decode()  # type: ignore[arg-type]
    raised = with_titles_above(placed, frame_titles(whole, drawing, options))
    svg = draw_placed(raised, "svg", engine, time_limit_s=30).decode()  # type: ignore[arg-type]
    titles = svg.split("<title>title_cluster_")

    assert len(titles) == 3  # of the network and of the repeated block
    assert 'class="edge"' in titles[0]
    assert 'class="edge"' not in "".join(titles[1:])
    assert 'fill="#f4f8fb"' in titles[1]
    assert ">Net<" in titles[1]


def test_the_size_is_that_of_the_picture() -> None:
    """It is read from the layout; a layout without one is an error."""
    assert size_in_points('digraph { graph [bb="0,0,120.5,80"]') == (120.5, 80.0)
    with pytest.raises(LayoutError, match="unknown"):
        size_in_points("digraph {}")


def test_names_of_the_program_do_not_move_titles() -> None:
    """Text that looks like a layout stays text."""
    odd = graph(
        op("MulBackward0", 1, module=0), op("ExpBackward0", 2, module=0), leaf(HOSTILE, 3), source=HOSTILE,
        modules=(ModuleCall(path=HOSTILE, class_name=HOSTILE),),
    )  # fmt: skip
    options = DrawOptions(depth=2)
    drawing = plan_drawing(odd, options)
    placed = lay_out(write_dot(odd, drawing, options), "dot", ENGINES[0], time_limit_s=30).decode()
    raised = with_titles_above(placed, frame_titles(odd, drawing, options))

    assert raised.count("title_cluster_") == 1
    assert 'pos="1,1"' not in raised
    assert size_in_points(placed) > (50, 50)
    assert draw_placed(raised, "png", ENGINES[0], time_limit_s=30).startswith(b"\x89PNG")


@pytest.mark.parametrize("engine", ENGINES, ids=["pure", "dot"])
def test_a_mirrored_layout_has_all_at_the_other_side(engine: object) -> None:
    """Boxes, frames and arrows; a title stays at the left of its frame, and twice is as it was."""
    whole, options = residual_blocks(5), DrawOptions(depth=2)
    drawing = plan_drawing(whole, options)
    placed = lay_out(write_dot(whole, drawing, options), "dot", engine, time_limit_s=30).decode()  # type: ignore[arg-type]
    turned = mirrored(placed)
    width, before, after = size_in_points(placed).width, rects_of(placed), rects_of(turned)

    assert before.keys() == after.keys()
    for name, rect in before.items():
        other = (width - rect.right, rect.bottom, width - rect.left, rect.top)
        assert other == pytest.approx(after[name], abs=0.1)
        assert list(rect) == pytest.approx(list(rects_of(mirrored(turned))[name]), abs=0.1)
    for name, title in _titles(placed).items():
        assert title - before[name].left == pytest.approx(_titles(turned)[name] - after[name].left, abs=0.1)
    assert draw_placed(turned, "svg", engine, time_limit_s=30).count(b'class="edge"') == placed.count(" -> ")  # type: ignore[arg-type]


def _titles(placed: str) -> dict[str, float]:
    """Return where the title of each frame is."""
    starts = [(start[1], TITLE_AT.search(placed, start.end())) for start in CLUSTER.finditer(placed)]
    return {name: float(found[1].split(",")[0]) for name, found in starts if found is not None}
