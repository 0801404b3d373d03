"""Arrows cross no more often in columns than below each other."""

import re
from itertools import pairwise

import pytest
from factories import graph, leaf, op
from msgspec.structs import replace

from gradinspect.graph import Graph, ModuleCall
from gradinspect.renderers.picture.crossings import count_crossings, count_hidden
from gradinspect.renderers.picture.dot.document import crossings_of, write_dot
from gradinspect.renderers.picture.fitting import fit_drawing
from gradinspect.renderers.picture.graphviz import find_engine, lay_out
from gradinspect.renderers.picture.layouts import Fitted
from gradinspect.renderers.picture.picture import draw
from gradinspect.renderers.picture.placed import Rect, rects_of
from gradinspect.renderers.picture.plan.drawing import in_columns
from gradinspect.renderers.picture.plan.parts import DrawOptions
from gradinspect.renderers.picture.routing import with_crossings

PURE = find_engine(path="")
SCREEN = DrawOptions(fit_to="screen")


def net(edges: list[tuple[int, ...]]) -> Graph:
    """Build a module whose nodes lead to the next one and to others; no two are alike."""
    nodes = [op(f"Op{place}Backward0", place + 1, *others, module=0) for place, others in enumerate(edges)]
    return graph(*nodes, leaf("w", 3), modules=(ModuleCall(path="", class_name="Net"),))


def u_net(depth: int) -> Graph:
    """Build a chain whose first half leads to its second half, as in a U-Net."""
    return net([(2 * depth - 1 - place,) if place < depth - 1 else () for place in range(2 * depth)])


def all_to_one(length: int) -> Graph:
    """Build a chain of which every second node leads to the last one, as to the embedding of a time."""
    return net([(length - 1,) if place % 2 == 0 and place < length - 2 else () for place in range(length)])


def routed(whole: Graph, fitted: Fitted, *, alone: bool = False) -> str:
    """Lay out a picture, or what Graphviz would draw without columns."""
    drawing = fitted.drawing
    if alone:
        everything = tuple(sorted((*drawing.arrows, *drawing.references)))
        drawing = in_columns(drawing._replace(arrows=everything, references=()), ())
    dot = write_dot(whole, drawing, fitted.options, caption_width=0)
    placed = lay_out(dot, "dot", PURE, time_limit_s=30).decode()
    return with_crossings(placed, crossings_of(whole, drawing, fitted.options), fitted.options.direction)


def edges_of(placed: str) -> list[tuple[str, str]]:
    """List the arrows that one sees."""
    found = re.findall(r"^\t+(\w+) -> (\w+)\t\[(.*?)\];$", placed, re.MULTILINE | re.DOTALL)
    return [(tail, head) for tail, head, values in found if "invis" not in values]


@pytest.mark.parametrize("direction", ["TB", "BT", "LR", "RL"])
@pytest.mark.parametrize("whole", [u_net(8), u_net(10), all_to_one(16)], ids=["8", "10", "one"])
def test_no_more_arrows_cross_than_in_one_column(whole: Graph, direction: str) -> None:
    """Also none is behind a box, and each edge is an arrow from its tail or a line in its box."""
    fitted = fit_drawing(whole, replace(SCREEN, direction=direction), PURE, 60)
    placed = routed(whole, fitted)

    assert fitted.drawing.columns
    assert count_crossings(placed) <= count_crossings(routed(whole, fitted, alone=True))
    assert count_hidden(placed) == 0
    arrows = {("root0", "n0"), *((f"n{arrow.tail}", f"n{arrow.head}") for arrow in fitted.drawing.arrows)}
    assert set(edges_of(placed)) == arrows
    assert len(fitted.drawing.arrows) + len(fitted.drawing.references) == sum(
        edge is not None and edge.next_node != len(whole.nodes) - 1 for node in whole.nodes for edge in node.next_edges
    )


def test_the_second_half_of_a_u_runs_back() -> None:
    """What leads to each other is beside each other, and the tip of each arrow is at its head."""
    whole = u_net(8)
    fitted = fit_drawing(whole, SCREEN, PURE, 60)
    rects = rects_of(routed(whole, fitted))

    assert fitted.drawing.turns
    assert rects["n15"].bottom > rects["n8"].top
    assert rects["n0"].bottom > rects["n7"].top
    svg = draw(whole, "svg", SCREEN, engine=PURE).content.decode()
    assert "Op14Backward0 to #15 Op15Backward0" in svg
    assert "Op15Backward0 to #14 Op14Backward0" not in svg


def test_a_target_that_many_lead_to_is_named_in_their_boxes() -> None:
    """The arrows would cross; the legend says what the line means."""
    whole = net([(22, 23) if place % 2 == 0 and place < 14 else () for place in range(24)])
    svg = draw(whole, "svg", SCREEN, engine=PURE).content.decode()

    assert svg.count("→") > 2
    assert "leads to the box of this name" in svg


@pytest.mark.parametrize("direction", ["LR", "RL"])
def test_a_long_chain_is_set_in_rows_where_it_runs_sideways(direction: str) -> None:
    """The first row is at the top, as in a text, and it fits."""
    whole = net([()] * 24)
    fitted = fit_drawing(whole, replace(SCREEN, direction=direction), PURE, 60)
    rects = rects_of(routed(whole, fitted))
    (rows,) = fitted.drawing.columns
    places = [rects[f"cluster_of0_{number}"] for number in range(len(rows))]

    assert fitted.fits
    assert len(rows) > 2
    assert all(upper.bottom > lower.top for upper, lower in pairwise(places))


def test_crossings_are_counted_as_one_sees_them() -> None:
    """Two lines that run along each other cross a third once; ends that touch do not cross."""
    assert count_crossings(layout("0,0 10,10 20,20 30,30", "0,31 10,21 20,11 30,1")) == 1
    assert count_crossings(layout("0,0 10,10 20,20 30,30", "0,31 10,21 20,11 30,1", "1,31 11,21 21,11 31,1")) == 1
    assert count_crossings(layout("0,0 10,0 20,0 30,0", "30,0 30,10 30,20 30,30")) == 0


def test_an_arrow_behind_a_box_is_seen() -> None:
    """Unless it only touches the border."""
    box = '\tn1\t[height=0.5,\n\t\tpos="50,50",\n\t\twidth=0.5];\n'

    assert rects_of(box)["n1"] == Rect(32, 32, 68, 68)
    assert count_hidden(box + layout("0,50 30,50 60,50 100,50")) == 1
    assert count_hidden(box + layout("0,32 30,32 60,32 100,32")) == 0


def layout(*paths: str) -> str:
    """Write arrows as Graphviz does."""
    return "".join(f'\ta{number} -> b{number}\t[pos="{path}"];\n' for number, path in enumerate(paths))
