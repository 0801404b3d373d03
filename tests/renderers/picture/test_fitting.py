"""A picture that fits: as much is open as there is room for, and nothing collides."""

import re
from itertools import combinations, pairwise
from math import isnan
from pathlib import Path
from typing import Literal

import pytest
from factories import gradient_stats, graph, leaf, op, product_plus_two, residual_blocks, saved
from hypothesis import given, settings
from msgspec.structs import replace
from strategies import graphs

from gradinspect.graph import Gradients, Graph, ModuleCall, NodeGradients, Storage
from gradinspect.renderers.picture.dot.document import part_names, write_dot
from gradinspect.renderers.picture.fitting import fit_drawing
from gradinspect.renderers.picture.graphviz import Engine, find_engine, lay_out
from gradinspect.renderers.picture.layouts import SHEETS, TOLERANCE, Fitted, Layouter
from gradinspect.renderers.picture.picture import draw
from gradinspect.renderers.picture.placed import Rect, rects_of
from gradinspect.renderers.picture.plan.drawing import Drawing
from gradinspect.renderers.picture.plan.parts import Box, DrawOptions, ScopeStart

PURE = find_engine(path="")
SCREEN = DrawOptions(fit_to="screen")


def blocks(count: int, num_ops: int = 3, last: int | None = None) -> Graph:
    """Build a chain of blocks, all different, each in a module call; the last may have another number of nodes."""
    sizes = [*[num_ops] * (count - 1), num_ops if last is None else last]
    modules = [1 + place for place, size in enumerate(sizes) for _ in range(size)]
    nodes = [op(f"Op{place}Backward0", place + 1, module=module) for place, module in enumerate(modules)]
    calls = (ModuleCall(path=f"part_{place}", class_name=f"Block{place}", parent=0) for place in range(count))
    return graph(*nodes, leaf("w", 3), modules=(ModuleCall(path="", class_name="Net"), *calls))


def fit(whole: Graph, options: DrawOptions = SCREEN) -> Fitted:
    """Fit a graph with the engine that is always there."""
    return fit_drawing(whole, options, PURE, 60)


def places_of(whole: Graph, fitted: Fitted, options: DrawOptions = SCREEN) -> dict[str, Rect]:
    """Lay out what was fitted, and say where everything is."""
    return rects_of(lay_out(write_dot(whole, fitted.drawing, options), "dot", PURE, time_limit_s=30).decode())


def size(svg: bytes) -> tuple[float, float]:
    """Return the width and the height of an SVG, in points."""
    match = re.search(rb'<svg width="([\d.]+)pt" height="([\d.]+)pt"', svg)
    assert match is not None
    return float(match[1]), float(match[2])


def open_modules(whole: Graph, fitted: Fitted) -> list[str]:
    """List the paths of the modules that are expanded."""
    starts = [part.scope.module for part in fitted.drawing.parts if isinstance(part, ScopeStart)]
    return [whole.modules[module].path for module in starts if module is not None]


@pytest.mark.slow
@given(graphs())
@settings(deadline=None, max_examples=60)
def test_nothing_collides_and_all_nodes_are_accounted_for(whole: Graph) -> None:
    """No two boxes overlap, no box is outside of its frame, and each node is in one box."""
    fitted = fit(whole)
    rects = places_of(whole, fitted)
    boxes = [rect for name, rect in rects.items() if not name.startswith("cluster")]
    frames = [rect for name, rect in rects.items() if re.fullmatch(r"cluster_\d+", name)]

    assert not [pair for pair in combinations(boxes, 2) if pair[0].overlaps(pair[1])]
    assert all(not frame.overlaps(box) or _is_in(box, frame) for frame in frames for box in boxes)
    drawn = [node for box in fitted.drawing.boxes for node in box.ids if whole.nodes[node].kind != "accumulate_grad"]
    assert drawn == [node for node, one in enumerate(whole.nodes) if one.kind != "accumulate_grad"]


def _is_in(box: Rect, frame: Rect) -> bool:
    return box.left >= frame.left and box.right <= frame.right and box.bottom >= frame.bottom and box.top <= frame.top


@pytest.mark.parametrize("sheet", ["screen", "a4", "slide"])
@pytest.mark.parametrize(
    "whole",
    [blocks(4), blocks(12), blocks(30), residual_blocks(9), blocks(1, 30)],
    ids=["4", "12", "30", "res", "long"],
)
def test_the_whole_picture_is_within_its_sheet(whole: Graph, sheet: Literal["screen", "a4", "slide"]) -> None:
    """With the caption and the margin, in both engines' units. A screen has no edge that cuts."""
    width, height = size(draw(whole, "svg", DrawOptions(fit_to=sheet), engine=PURE).content)
    factor = TOLERANCE if sheet == "screen" else 1

    assert width <= SHEETS[sheet].width * factor
    assert height <= SHEETS[sheet].height * factor


def test_a_long_chain_is_set_in_columns_from_left_to_right() -> None:
    """Each column begins at the top, below the same title, and goes on where the one before ends."""
    whole = blocks(1, 30)
    fitted = fit(whole)
    rects = places_of(whole, fitted)
    (columns,) = fitted.drawing.columns
    places = [rects[f"cluster_of0_{number}"] for number in range(len(columns))]

    assert len(columns) > 2
    assert all(one.right < other.left for one, other in pairwise(places))
    assert len({round(place.top) for place in places}) == 1
    svg = draw(whole, "svg", SCREEN, engine=PURE).content.decode()
    assert svg.count('class="edge"') == len(whole.nodes) - 1


def test_what_changed_most_is_opened_first() -> None:
    """In a comparison those blocks are open that have nodes which changed, wherever they are."""
    whole = blocks(20)
    statuses = tuple("changed" if node in {7 * 3, 12 * 3} else "" for node in range(len(whole.nodes)))

    opened = open_modules(whole, fit(whole, replace(SCREEN, statuses=statuses)))

    assert {"part_7", "part_12"} <= set(opened)
    assert len(opened) < 18


def test_with_color_by_grad_the_largest_gradients_are_opened() -> None:
    """NaN is larger than any."""
    whole = blocks(20)
    norms = dict.fromkeys(range(60), 1.0) | {7 * 3: 1e9, 12 * 3: float("nan")}
    ran = tuple(
        NodeGradients(node=node, order=node, incoming=(gradient_stats(norm, bad=int(isnan(norm))),))
        for node, norm in norms.items()
    )
    whole = replace(whole, gradients=Gradients(nodes=ran))

    opened = open_modules(whole, fit(whole, replace(SCREEN, color_by="grad")))

    assert {"part_7", "part_12"} <= set(opened)
    assert len(opened) < 18


def test_a_small_module_is_opened_beside_a_large_one_that_stays_closed() -> None:
    """What is inside of the closed one is not tried, so it takes no turn of the small ones after it."""
    modules = [*[1] * 100, *(2 + place // 5 for place in range(50)), 12, 12, 12]
    nodes = [op(f"Op{place}Backward0", place + 1, module=module) for place, module in enumerate(modules)]
    parts = (ModuleCall(path=f"large.{place}", class_name=f"Part{place}", parent=1) for place in range(10))
    calls = (ModuleCall(path="large", class_name="Large", parent=0), *parts)
    small = ModuleCall(path="small", class_name="Small", parent=0)
    whole = graph(*nodes, leaf("w", 3), modules=(ModuleCall(path="", class_name="Net"), *calls, small))

    assert open_modules(whole, fit(whole)) == ["", "small"]


def test_columns_are_made_lower_until_they_fit() -> None:
    """A layout in columns is higher than what each of them needs, since boxes of one rank are side by side."""
    nodes = [op(f"Op{place}Backward0", place + 1, module=int(0 < place < 21)) for place in range(26)]
    body = ModuleCall(path="body", class_name="Body", parent=0)
    whole = graph(*nodes, leaf("w", 3), modules=(ModuleCall(path="", class_name="Net"), body))

    assert open_modules(whole, fit(whole)) == ["", "body"]


def test_a_depth_that_is_asked_for_is_drawn() -> None:
    """The picture is set in columns then, but nothing else is opened or closed."""
    whole = blocks(12)

    assert open_modules(whole, fit(whole, replace(SCREEN, depth=0))) == []
    assert open_modules(whole, fit(whole, replace(SCREEN, depth=1))) == [""]
    assert len(open_modules(whole, fit(whole, replace(SCREEN, depth=2)))) == 13


def test_a_model_that_is_one_box_is_opened_even_if_it_does_not_fit() -> None:
    """One closed box would say nothing: the limit is a number of boxes then."""
    fitted = fit(blocks(1, 70), replace(SCREEN, fit_to="a4"))

    assert len(fitted.drawing.boxes) == 70
    assert not fitted.fits


def test_leaves_are_rows_of_the_boxes_that_use_them() -> None:
    """No box of their own; what their tooltip said is in that of the box."""
    drawn = draw(product_plus_two(), "svg", SCREEN, engine=PURE).content.decode()

    assert drawn.count('class="node"') == 3
    assert "AccumulateGrad of" in drawn
    assert ">+=</tspan>" in drawn


def test_a_small_picture_is_not_made_wide_by_its_caption() -> None:
    """Several facts share a line only where the picture is as wide."""
    width, _ = size(draw(product_plus_two(), "svg", SCREEN, engine=PURE).content)

    assert width < 470


def test_leaves_are_counted_where_their_names_leave_no_room() -> None:
    """Nothing is left out without a word: each box says how many, the caption that they are not drawn."""
    linear = [op(f"Addmm{place}Backward0", place + 1, 24, 25, 26) for place in range(23)]
    names = ("a.long.name.of.a.weight", "another.long.name.of.a.bias", "the.third.of.the.names")
    whole = graph(*linear, op("AddmmBackward0", 24, 25, 26), *(leaf(name, 2000, 3000) for name in names))
    drawn = draw(whole, "svg", DrawOptions(fit_to="slide"), engine=PURE).content

    assert fit(whole, DrawOptions(fit_to="slide")).options.counts_leaves
    assert drawn.count("· 3 leaves".encode()) == 24
    assert b"leaves are counted, not drawn" in drawn
    assert all(side <= limit for side, limit in zip(size(drawn), SHEETS["slide"], strict=True))


@pytest.mark.parametrize("num_bytes", [4, 0])
def test_leaves_are_counted_where_nearly_all_would_be_in_one_closed_box(num_bytes: int) -> None:
    """What holds the memory says more than their names; where nothing is held, they stay."""
    names = ("a.long.name.of.a.weight", "another.long.name.of.a.bias", "the.third.of.the.names")
    saving = (saved("x", 1, storage=0),) if num_bytes else ()
    nodes = [op(f"Op{place}Backward0", place + 1, module=0) for place in range(8)]
    nodes += [op(f"Addmm{place}Backward0", place + 1, 27, 28, 29, module=1, saved=saving) for place in range(8, 26)]
    modules = (ModuleCall(path="", class_name="Net"), ModuleCall(path="body", class_name="Body", parent=0))
    whole = graph(*nodes, op("Op26Backward0", module=0), *(leaf(name, 2000, 3000) for name in names), modules=modules,
                  storages=(Storage(num_bytes=4, origin="activation"),))  # fmt: skip
    fitted = fit(whole, DrawOptions(fit_to="slide"))

    assert fitted.fits
    assert fitted.options.counts_leaves == bool(num_bytes)
    assert ("body" in open_modules(whole, fitted)) == bool(num_bytes)


def test_labels_of_arrows_are_outside_of_boxes() -> None:
    """And inside of the picture."""
    drawn = draw(residual_blocks(9), "svg", SCREEN, engine=PURE).content.decode()
    edges = re.findall(r'class="edge">.*?</g>', drawn, re.DOTALL)
    texts = [re.search(r'<text [^>]*x="([-\d.]+)" y="([-\d.]+)"', edge) for edge in edges]
    outlines = re.findall(r'class="node">.*?<(?:path|polygon) [^>]*(?:d|points)="([^"]*)"', drawn, re.DOTALL)
    boxes = [[(float(x), float(y)) for x, y in re.findall(r"([-\d.]+),([-\d.]+)", one)] for one in outlines]

    assert any(texts)
    for text in filter(None, texts):
        x, y = float(text[1]), float(text[2]) - 3
        for box in boxes:
            (left, right), (top, bottom) = ((min(side), max(side)) for side in zip(*box, strict=True))
            assert not (left < x < right and top < y < bottom)


def test_an_engine_that_writes_no_layout_opens_nothing(tmp_path: Path) -> None:
    """What is drawn then is for others to say; nothing fails here."""
    program = tmp_path / "dot"
    program.write_text("#!/bin/sh\ncat > /dev/null\necho '<svg/>'\n")
    program.chmod(0o755)

    fitted = fit_drawing(blocks(12), SCREEN, Engine(program, writes_pdf=True), 60)

    assert not fitted.fits
    assert not fitted.drawing.columns


def test_a_depth_with_more_boxes_than_any_sheet_holds_is_drawn() -> None:
    """In one column, and nothing is closed."""
    drawn = draw(blocks(80), "svg", replace(SCREEN, depth=2), engine=PURE).content

    assert drawn.count(b'class="node"') == 241


def lefts(whole: Graph, fitted: Fitted, options: DrawOptions) -> list[float]:
    """Return how far to the right the columns stand, in the order of the nodes in them."""
    places = places_of(whole, fitted, options)
    boxes = [place for place, part in enumerate(fitted.drawing.parts) if isinstance(part, Box)]
    names = part_names(fitted.drawing.parts)
    (runs,) = fitted.drawing.columns
    return [min(places[names[place]].left for place in boxes if place in run) for run in runs]


def test_columns_are_read_from_left_to_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphviz puts what it is given first on either side: where that is the right one, it is given last."""
    slide = DrawOptions(fit_to="slide")
    whole, ours = blocks(7), Layouter._lay_out

    def turned(self: Layouter, drawing: Drawing) -> str | None:
        """Lay out as an engine that puts the first columns to the right."""
        return ours(self, drawing._replace(mirrored=frozenset() if drawing.mirrored else frozenset({0})))

    assert lefts(whole, fit(whole, slide), slide) == sorted(lefts(whole, fit(whole, slide), slide))

    monkeypatch.setattr(Layouter, "_lay_out", turned)
    found = fit(whole, slide)

    assert len(found.drawing.columns[0]) > 2
    assert found.drawing.mirrored == {0}
    assert lefts(whole, found, slide) == sorted(lefts(whole, found, slide), reverse=True)  # by the engine without that
