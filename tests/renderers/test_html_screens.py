"""The page on a large screen, on a phone and on paper, in a Chromium; skipped where there is none."""

import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_page import Seen
from factories import graph, op, residual_blocks

from gradinspect.graph import Graph
from gradinspect.renderers.html.page import render_html
from gradinspect.renderers.picture.plan.parts import DrawOptions

pytestmark = pytest.mark.slow

PHONE = {"width": 390, "height": 844}
CLOSED_FILL = b".8902 .9255 .9804 rg"  # of the light theme, as PDF writes it
FITS_ACROSS = """() => {
  const stage = document.getElementById('picture').getBoundingClientRect();
  const drawn = document.querySelector('#picture > g').getBoundingClientRect();
  return drawn.left >= stage.left - 1 && drawn.right <= stage.right + 1;
}"""


def tall() -> Graph:
    """Build a chain of closed modules, several screens long, with a residual connection around each of two."""
    return residual_blocks(2)


def chain(length: int) -> Graph:
    """Build a chain that is taller than a page of paper."""
    return graph(*(op(f"Op{place}Backward0", place + 1) for place in range(length - 1)), op("EndBackward0", None))


@pytest.fixture
def phone(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """Open a page on a phone."""
    file = tmp_path / "phone.html"
    file.write_text(render_html(tall(), DrawOptions(depth=3)), encoding="utf-8")
    context = browser.new_context(viewport=PHONE, is_mobile=True, has_touch=True)
    page = context.new_page()
    page.goto(file.as_uri())
    yield page
    context.close()


def open_page(browser: Any, folder: Path, shown: Graph, **options: Any) -> Any:
    """Open a graph in a new page."""
    file = folder / "page.html"
    file.write_text(render_html(shown, DrawOptions(**options)), encoding="utf-8")
    page = browser.new_page(viewport={"width": 1200, "height": 800})
    page.goto(file.as_uri())
    return page


def drawn_of(pdf: bytes) -> bytes:
    """Return what the pages of a PDF draw."""
    streams = re.findall(rb"FlateDecode.*?stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL)
    return b"\n".join(zlib.decompressobj().decompress(stream) for stream in streams)


def test_boxes_say_what_they_hold(seen: Seen) -> None:
    """A node, an expanded and a collapsed module have their bytes beside their shape or size."""
    assert "f32[2, 768] · 8 B" in seen.box(1).text_content()
    assert "2 nodes · 8 B" in seen.box(-1).last.text_content()

    seen.click_title(-1)

    assert "2 nodes · 8 B" in seen.box(-1).first.text_content()


def test_a_question_mark_lists_the_keys(seen: Seen) -> None:
    """Each key is listed; the same key, Escape and the button close the list and do nothing else."""
    seen.box(1).click()
    seen.page.keyboard.press("?")
    keys = seen.page.locator("#keys")

    assert keys.locator("kbd").all_inner_texts()[-2:] == ["Escape", "?"]
    assert keys.locator("dd").count() == keys.locator("kbd").count()

    seen.page.keyboard.press("t")  # no key but `?` acts behind the list
    seen.page.keyboard.press("Escape")

    assert not keys.is_visible()
    assert seen.page.locator("#panel").is_visible()
    assert not seen.page.locator("#table").is_visible()

    seen.page.get_by_role("button", name="Keys").click()
    seen.page.keyboard.press("?")

    assert not keys.is_visible()


def test_the_head_begins_with_what_is_held(seen: Seen) -> None:
    """A narrow head cuts the end, so the total comes first; edges are counted as in every other head."""
    assert seen.page.locator("#figures").inner_text().startswith("8 B held · 7 nodes · 7 edges (1 None) · 2 leaves")


def test_a_highlighted_path_is_brought_into_view(browser: Any, tmp_path: Path) -> None:
    """Wherever the view was, all of the path is on the screen after the button."""
    page = open_page(browser, tmp_path, chain(60))
    page.evaluate("location.hash = '#n40'")
    page.wait_for_selector('[data-item="40"].chosen')
    page.get_by_role("button", name="Highlight path to loss").click()
    outside = """() => {
      const stage = document.getElementById('picture').getBoundingClientRect();
      return [...document.querySelectorAll('#picture .node.lit')].filter((box) => {
        const place = box.getBoundingClientRect();
        const isAcross = place.left >= stage.left && place.right <= stage.right;
        return !isAcross || place.top < stage.top || place.bottom > stage.bottom;
      }).length;
    }"""

    assert page.locator("#picture .node.lit").count() == 41
    assert page.evaluate(outside) == 0
    page.close()


def test_the_table_has_source_lines(seen: Seen) -> None:
    """Beside the file and line stands the code."""
    seen.page.keyboard.press("t")

    assert "train.py:9y = w * xp" in seen.page.locator("#table tbody tr").nth(1).text_content()


def test_the_legend_has_only_what_is_shown(seen: Seen) -> None:
    """A mark comes when the first such box does, and goes with the last; so do colors."""
    legend = seen.page.locator("#legend")

    assert "leaf" in legend.inner_text()
    assert "collapsed" not in legend.inner_text()

    seen.page.get_by_role("button", name="Collapse", exact=True).click()

    assert "collapsed box" in legend.inner_text()
    assert "leaf" not in legend.inner_text()

    seen.page.locator("#color").select_option("module")
    shown = legend.inner_text()

    assert "Scale" in shown
    assert "collapsed box" not in shown


def test_a_legend_with_nothing_closed_ends_there(browser: Any, tmp_path: Path) -> None:
    """What is not to say leaves no trace."""
    page = open_page(browser, tmp_path, chain(3))

    assert page.locator("#legend").inner_text() == "↓ gradients flow down"
    page.close()


def test_parts_without_a_common_node_fill_the_screen(browser: Any, tmp_path: Path) -> None:
    """Many graphs from one call stand in rows, not in one line that is wider than any screen."""
    many = graph(*(op(f"Op{place}Backward0", None) for place in range(40)), roots=tuple(range(40)))
    page = open_page(browser, tmp_path, many)
    tops = page.evaluate(
        "[...new Set([...document.querySelectorAll('.node')].map((box) => box.getBoundingClientRect().top))]"
    )

    assert len(tops) > 3
    assert page.evaluate(FITS_ACROSS)
    assert page.locator("#picture .node").count() == 40
    page.close()


def test_a_residual_connection_is_explained(browser: Any, tmp_path: Path) -> None:
    """The legend names the second line beside closed blocks."""
    page = open_page(browser, tmp_path, tall(), depth=1)

    assert "residual connection" in page.locator("#legend").inner_text()
    page.close()


def test_a_phone_shows_the_picture(phone: Any) -> None:
    """Controls, legend and map are behind a button each; the picture fits the width and has most of the room."""
    assert phone.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    assert phone.locator("#picture").bounding_box()["height"] > 0.85 * PHONE["height"]
    assert phone.evaluate(FITS_ACROSS)

    for button, hidden in (("Menu", "#controls"), ("Legend", "#legend"), ("Map", "#minimap")):
        assert not phone.locator(hidden).is_visible()

        phone.get_by_role("button", name=button, exact=True).tap()

        assert phone.locator(hidden).is_visible()

        phone.get_by_role("button", name=button, exact=True).tap()

        assert not phone.locator(hidden).is_visible()


def test_a_phone_shows_details_below_the_picture(phone: Any) -> None:
    """The panel leaves part of the picture in view, and everything fits the width."""
    phone.locator("#picture .node").first.tap()

    assert phone.locator("#panel").is_visible()
    assert phone.locator("#picture").bounding_box()["height"] > 0.3 * PHONE["height"]
    assert phone.evaluate("document.documentElement.scrollWidth") == PHONE["width"]


def test_two_fingers_zoom(phone: Any) -> None:
    """The page's own zoom replaces the browser's, which would enlarge the controls."""
    scale = "document.querySelector('#picture > g').transform.baseVal.consolidate().matrix.a"
    before = phone.evaluate(scale)
    touch = phone.context.new_cdp_session(phone)
    for kind, apart in (("touchStart", 40), ("touchMove", 60), ("touchMove", 80)):
        points = [{"x": 195 - apart, "y": 400, "id": 0}, {"x": 195 + apart, "y": 400, "id": 1}]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

    assert phone.evaluate(scale) == pytest.approx(2 * before, rel=0.05)


def test_a_printed_page_has_the_whole_picture_in_its_colors(browser: Any, tmp_path: Path) -> None:
    """Whatever is on the screen, paper has every box once, within its width, in the light theme's colors."""
    page = open_page(browser, tmp_path, tall(), depth=1)
    page.emulate_media(color_scheme="dark")
    page.evaluate("document.getElementById('in').click()")
    drawn = drawn_of(page.pdf(format="A4"))
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    items = "[...document.querySelectorAll('{} .box')].map((box) => box.dataset.item).sort()"

    assert CLOSED_FILL in drawn
    assert page.evaluate(items.format("#printed")) == page.evaluate(items.format("#picture"))
    assert page.locator("#printed .legend").inner_text().startswith("↓ gradients flow down")
    assert not page.locator("#controls").is_visible()

    page.evaluate("window.dispatchEvent(new Event('afterprint'))")

    assert page.locator("#printed svg").count() == 0
    page.close()


def test_a_long_graph_is_printed_in_pieces_cut_between_boxes(browser: Any, tmp_path: Path) -> None:
    """Several columns or pages have each box once, whole."""
    page = open_page(browser, tmp_path, chain(90), depth=1)
    page.get_by_role("button", name="Expand").click()
    shown = page.locator("#picture .node").count()
    pages = page.pdf(format="A4").count(b"/Type /Page\n")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    whole = """() => [...document.querySelectorAll('#printed svg')].every((piece) => {
      const [, top, , height] = piece.getAttribute('viewBox').split(' ').map(Number);
      return [...piece.querySelectorAll('.node')].every((box) => {
        const y = box.parentNode.transform.baseVal.consolidate().matrix.f;
        return y - 20 >= top && y + 20 <= top + height;
      });
    })"""

    assert pages > 1
    assert page.locator("#printed svg").count() > 1
    assert page.locator("#printed .node").count() == shown == 90
    assert page.evaluate(whole)
    page.close()


def test_a_printed_table_is_not_a_picture(seen: Seen) -> None:
    """What is on the screen is what is printed."""
    seen.page.keyboard.press("t")
    seen.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")

    assert seen.page.locator("#printed svg").count() == 0
