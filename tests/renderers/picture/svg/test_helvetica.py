"""Text that keeps to its box in any font."""

import re

import pytest
from factories import residual_blocks
from hypothesis import given
from hypothesis import strategies as st

from gradinspect.renderers.picture.dot.document import FONT
from gradinspect.renderers.picture.graphviz import find_engine, lay_out
from gradinspect.renderers.picture.picture import draw
from gradinspect.renderers.picture.svg.helvetica import FONTS, helvetica_width, hold_widths

PURE = find_engine("/nonexistent")  # a search path without the system's dot
NAMES = ["NllLossBackward0", "f32[4, 32, 64]", "{|}~ !?@%&W", "blocks.0-5", "The quick brown fox jumps over a lazy dog"]


@pytest.mark.parametrize("is_bold", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_widths_are_those_that_the_engine_takes(name: str, is_bold: bool) -> None:
    """What comes after a text begins where it ends, to the hundredth of a point."""
    text = name.replace("&", "&amp;")
    label = f"<{f'<b>{text}</b>' if is_bold else text}<u>after</u>>"
    svg = lay_out(
        f'digraph {{ n [fontname="{FONT}" fontsize=10 label={label}] }}', "svg", PURE, time_limit_s=20
    ).decode()
    start, end = (float(x) for x in re.findall(r'<text [^>]* x="([^"]*)"', svg))

    assert end - start == pytest.approx(helvetica_width(name, 10, is_bold=is_bold), abs=0.03)


def test_every_line_of_a_picture_has_its_width() -> None:
    """But for an arrow, which Helvetica does not have."""
    svg = draw(residual_blocks(2), "svg", engine=PURE).content.decode()
    lines = re.findall(r"<text ([^>]*)>(.*)</text>", svg)
    without = [re.sub("<[^>]*>", "", content) for attributes, content in lines if "textLength" not in attributes]

    assert len(lines) > 10
    assert set(without) <= {"→"}


def test_all_text_names_fonts_that_are_as_wide() -> None:
    """Those that a machine may have in place of Helvetica come before its sans-serif, which may be wider."""
    svg = draw(residual_blocks(2), "svg", engine=PURE).content.decode()
    named = set(re.findall('font-family="([^"]*)"', svg))

    assert named == {FONTS}
    assert FONTS.startswith("Helvetica,Arial,Liberation Sans,")


@given(st.text(max_size=8))
def test_an_unknown_character_leaves_a_line_as_it_is(name: str) -> None:
    """No width is better than a wrong one."""
    text = f'<text x="1" font-size="10.00">{name}漢</text>'

    assert helvetica_width(name + "漢", 10) is None
    assert hold_widths(text) == text
