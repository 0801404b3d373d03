"""Pictures for a paper."""

import re

import pytest
from factories import graph, leaf, op, product_plus_two

from gradinspect.graph import Graph, ModuleCall
from gradinspect.renderers.picture.graphviz import find_engine
from gradinspect.renderers.picture.paper import HEIGHT, WIDTH, fit_sheet
from gradinspect.renderers.picture.picture import draw
from gradinspect.renderers.picture.plan.parts import DrawOptions

PURE = find_engine(path="")
PAPER = DrawOptions(theme="paper", fit_to="screen")


def blocks(count: int) -> Graph:
    """Build a chain of blocks, all different, of three nodes each."""
    nodes = [op(f"Op{place}Backward0", place + 1, module=1 + place // 3) for place in range(3 * count)]
    calls = (ModuleCall(path=f"part_{chr(97 + place)}", class_name="Block", parent=0) for place in range(count))
    return graph(*nodes, leaf("w", 3), modules=(ModuleCall(path="", class_name="Net"), *calls))


def size(svg: bytes) -> tuple[float, float]:
    """Return the width and the height of an SVG, in points."""
    match = re.search(rb'<svg width="([\d.]+)pt" height="([\d.]+)pt"', svg)
    assert match is not None
    return float(match[1]), float(match[2])


@pytest.mark.parametrize("engine", [PURE, find_engine()], ids=["pure", "dot"])
@pytest.mark.parametrize("whole", [product_plus_two(), blocks(8)], ids=["small", "tall"])
def test_all_are_as_wide_as_the_text_and_no_higher_than_a_page(engine: object, whole: Graph) -> None:
    """A small picture is not enlarged; there is no legend and nothing but white behind it."""
    drawn = draw(whole, "svg", PAPER, engine=engine)  # type: ignore[arg-type]
    text = drawn.content.decode()

    width, height = size(drawn.content)

    assert width == pytest.approx(WIDTH, abs=1)
    assert height <= HEIGHT + 1
    assert "gradients flow" not in text
    assert "<text" in text
    assert re.search(r"scale\((0\.[6-9]|1)", text)


def test_less_is_opened_until_text_can_be_read() -> None:
    """The note says that blocks are closed, as elsewhere; a picture that fits anyway is not changed."""
    tall = draw(blocks(40), "svg", PAPER, engine=PURE)

    assert draw(product_plus_two(), "svg", PAPER, engine=PURE).notes == ()
    assert [note.split("; ")[1] for note in tall.notes] == ["--depth or --full open them"]


def test_a_depth_that_is_asked_for_is_kept_and_small_text_named() -> None:
    """A note says how large the text is then."""
    drawn = draw(blocks(10), "svg", DrawOptions(theme="paper", depth=2), engine=PURE)

    assert drawn.content.count(b'class="node"') > 30
    assert [re.sub(r"[\d.]+ points", "N points", note) for note in drawn.notes] == [
        "text is N points high; a smaller --depth, or --around, makes it larger"
    ]


def test_a_bitmap_has_the_same_shape() -> None:
    """Its width is that of the text at the resolution of every bitmap."""
    content = draw(product_plus_two(), "png", PAPER, engine=PURE).content

    assert int.from_bytes(content[16:20]) == pytest.approx(WIDTH * 192 / 72, abs=2)


def test_a_sheet_is_centered() -> None:
    """What is narrower than the text has the same white on both sides."""
    sheet = fit_sheet('digraph { graph [bb="0,0,100,50"]')

    assert (sheet.scale, sheet.note) == (1.0, "")
    assert sheet.viewport == f"{WIDTH:.2f},58.00,1.00000,50.00,25.00"
