"""The page as it is used, in a Chromium; skipped where there is none."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from browser_page import HOSTILE, Seen
from factories import graph, leaf, op, saved

from gradinspect.graph import Storage
from gradinspect.renderers.html.page import render_html
from gradinspect.units import format_bytes

pytestmark = pytest.mark.slow


def test_hostile_names_make_no_element(seen: Seen) -> None:
    """What a program calls its things is shown, not run."""
    assert seen.page.locator("img").count() == 0
    assert seen.page.title() == "train.py · gradinspect"
    assert seen.page.get_by_text("</script><img").count() > 0


def test_a_click_closes_and_opens_a_module(seen: Seen) -> None:
    """The box changes in place, and what is in it comes and goes."""
    assert seen.box(1).count()

    seen.click_title(-1)

    assert not seen.box(1).count()
    assert seen.box(-1).first.get_attribute("aria-expanded") == "false"

    seen.box(-1).click()

    assert seen.box(1).count()


def test_the_keyboard_opens_and_closes(seen: Seen) -> None:
    """Enter does what a click does, and arrows walk along the edges."""
    seen.box(0).focus()
    seen.page.keyboard.press("ArrowDown")

    assert seen.page.evaluate("document.activeElement.dataset.item") == "1"

    seen.page.keyboard.press("ArrowLeft")
    seen.page.keyboard.press("Enter")

    assert not seen.box(1).count()


def test_all_can_be_folded_and_unfolded(seen: Seen) -> None:
    """The two buttons close all, and open level by level."""
    seen.page.get_by_role("button", name="Collapse", exact=True).click()

    assert seen.page.locator('#picture [aria-expanded="true"]').count() == 0

    seen.page.get_by_role("button", name="Expand").click()

    assert seen.page.locator('#picture [aria-expanded="false"]').count() == 0


def test_the_view_moves_and_fits(seen: Seen) -> None:
    """Dragging and the wheel change the view; `f` brings it back."""
    view = "document.querySelector('#picture > g').getAttribute('transform')"
    seen.page.keyboard.press("f")
    whole = seen.page.evaluate(view)
    seen.page.mouse.move(100, 300)
    seen.page.mouse.down()
    seen.page.mouse.move(200, 400)
    seen.page.mouse.up()
    seen.page.mouse.wheel(0, 300)

    assert whole != seen.page.evaluate(view)

    seen.page.keyboard.press("f")

    assert whole == seen.page.evaluate(view)


def test_a_click_tells_all_about_a_node(seen: Seen) -> None:
    """The panel has outputs, edges by argument, saved values, the module, the line; its links lead on, and back."""
    seen.box(1).click()
    panel = seen.page.locator("#panel")
    told = panel.inner_text()

    for words in ("#1 MulBackward0", "f32[2, 768]", "self", "#2 TanhBackward0", "_saved_self", "live", "8 B", "scale",
                  "self: grad * other", "train.py:9",
                  "w = scale()\ny = w * xp\n" + HOSTILE, "#0 SumBackward0"):  # fmt: skip
        assert words in told
    assert seen.page.url.endswith("#n1")

    panel.get_by_role("link", name="#2 TanhBackward0").click()

    assert "#2 TanhBackward0" in panel.inner_text()

    seen.page.go_back()

    assert "#1 MulBackward0" in panel.inner_text()

    seen.page.keyboard.press("Escape")

    assert not panel.is_visible()


def test_an_address_names_a_node(seen: Seen) -> None:
    """Opened with the number of a node, the page opens the way to it."""
    seen.page.get_by_role("button", name="Collapse", exact=True).click()
    seen.page.evaluate("location.hash = '#n3'")
    seen.page.wait_for_selector('[data-item="3"].chosen')

    assert "#3 ExpBackward0" in seen.page.locator("#panel").inner_text()

    seen.page.reload()
    seen.page.wait_for_selector('[data-item="3"].chosen')


@pytest.mark.parametrize(
    ("words", "hits"),
    [
        ("tanh", ["#2 TanhBackward0"]),
        ("scale.weight", ["#1 MulBackward0", "#5 scale.weight"]),
        ("[*, 768]", ["#1 MulBackward0"]),
        ("f32[2, *] mul", ["#1 MulBackward0"]),
        ("train.py:9", ["#1 MulBackward0"]),
        ("xp", ["#3 ExpBackward0", "#1 MulBackward0"]),  # a name goes before the code of a line
        ("[[(", []),
        ("no such thing", []),
    ],
)
def test_search(seen: Seen, words: str, hits: list[str]) -> None:
    """Names, parameters, shapes and lines are found; odd patterns find nothing."""
    seen.page.keyboard.press("/")
    seen.page.keyboard.type(words)

    assert hits == seen.page.locator("#results a > span").all_inner_texts()


def test_a_found_node_is_shown(seen: Seen) -> None:
    """Enter opens the way to the first that was found."""
    seen.page.get_by_role("button", name="Collapse", exact=True).click()
    seen.page.keyboard.press("/")
    seen.page.keyboard.type("exp")
    seen.page.keyboard.press("Enter")
    seen.page.wait_for_selector('[data-item="3"].chosen')

    assert not seen.page.locator("#found").is_visible()


def test_what_is_chosen_is_copied_as_text(seen: Seen) -> None:
    """All that the panel tells, without its buttons, to be pasted somewhere."""
    seen.box(1).click()
    seen.page.keyboard.press("c")
    seen.page.wait_for_selector('.copy:text("Copied")')
    seen.page.keyboard.press("/")
    seen.page.keyboard.press("Control+V")
    pasted = seen.page.locator("#query").input_value()

    assert pasted.startswith("#1 MulBackward0")
    assert "self: grad * other" in pasted
    assert "Highlight path to parameters" not in pasted


def test_what_a_gradient_comes_from_is_lit(seen: Seen) -> None:
    """The rest is dimmed until the button is pressed again, or Escape."""
    seen.box(1).click()
    seen.page.get_by_role("button", name="Highlight path to loss").click()
    lit = "[...document.querySelectorAll('.node.lit')].map((box) => box.dataset.item).sort()"

    assert seen.page.evaluate(lit) == ["0", "1"]

    seen.page.get_by_role("button", name="Highlight path to parameters").click()

    assert seen.page.evaluate(lit) == ["1", "2", "3", "4"]

    seen.page.keyboard.press("Escape")

    assert seen.page.evaluate(lit) == []


def test_a_parameter_lights_all_ways_to_it(seen: Seen) -> None:
    """A leaf is chosen at its chip."""
    seen.page.locator('[data-leaf="5"]').click()
    seen.page.get_by_role("button", name="Highlight path to loss").click()

    assert seen.page.evaluate("[...document.querySelectorAll('.lit')].length") > 2
    assert "scale.weight" in seen.page.locator("#panel").inner_text()


@pytest.mark.parametrize("name", ["module", "bytes", "flops", "dtype", "device", "file"])
def test_boxes_are_filled(seen: Seen, name: str) -> None:
    """Each way to fill gives some box a fill and the legend its meaning; there are no gradients to fill by."""
    seen.page.locator("#color").select_option(name)

    assert seen.page.evaluate("[...document.querySelectorAll('.node .frame')].some((rect) => rect.style.fill)")
    assert seen.page.locator("#legend i").count()
    assert not seen.page.locator("#color option[value=grad]").count()


def test_the_table_is_sorted_by_its_heads(seen: Seen) -> None:
    """A row for each node, least or most first; its links tell all about a node."""
    seen.page.keyboard.press("t")

    assert seen.page.locator("tbody tr").count() == 7

    seen.page.get_by_role("button", name="Held").click()

    assert "#1" in seen.page.locator("#table tbody tr").first.inner_text()

    seen.page.get_by_role("link", name="ExpBackward0").click()

    assert "#3 ExpBackward0" in seen.page.locator("#panel").inner_text()

    seen.page.get_by_role("button", name="Table").click()
    seen.page.wait_for_selector('[data-item="3"].chosen')


def test_what_is_seen_can_be_saved(seen: Seen) -> None:
    """The saved SVG is well-formed, has the boxes and no script."""
    with seen.page.expect_download() as waiting:
        seen.page.get_by_role("button", name="Save").click()
    saved_picture = ElementTree.fromstring(Path(waiting.value.path()).read_text(encoding="utf-8"))  # noqa: S314
    words = "".join(saved_picture.itertext())

    assert waiting.value.suggested_filename == "train.svg"
    assert "Tanh" in words
    assert not [element for element in saved_picture.iter() if element.tag.endswith(("script", "image", "img"))]


def test_a_chosen_parameter_shows_the_way_to_it(seen: Seen) -> None:
    """Choosing a leaf lights the edges that lead to it and dims nothing; choosing something else ends that."""
    seen.page.locator('[data-leaf="5"]').click()

    assert seen.page.locator(".stream.lit").count()
    assert not seen.page.locator(".dimmed").count()

    seen.box(3).click()

    assert not seen.page.locator(".lit").count()


def test_what_keeps_a_storage_alive_is_lit(browser: Any, tmp_path: Path) -> None:
    """All nodes that keep the same memory, and no others."""
    shared = saved("_saved_self", 2, storage=0)
    kept = graph(
        op("MulBackward0", 1, saved=(shared,)), op("ExpBackward0", 2, saved=(saved("_saved_result", 2, storage=1),)),
        op("SinBackward0", 3, saved=(shared,)), leaf("w", 3), storages=(Storage(num_bytes=8), Storage(num_bytes=8)),
    )  # fmt: skip
    file = tmp_path / "kept.html"
    file.write_text(render_html(kept), encoding="utf-8")
    page = browser.new_page()
    page.goto(f"{file.as_uri()}#n0")
    page.get_by_role("button", name="kept by 2").click()
    lit = page.evaluate("[...document.querySelectorAll('.node.lit')].map((box) => box.dataset.item)")
    page.close()

    assert sorted(lit) == ["0", "2"]


def test_bytes_are_those_of_the_terminal_to_the_digit(browser: Any, tmp_path: Path) -> None:
    """Also half-way between two digits, where JavaScript alone would round up."""
    half = 42 * 1024 + 256
    kept = graph(
        op("MulBackward0", 1, saved=(saved("_saved_self", 2, storage=0),)), leaf("w", 2),
        storages=(Storage(num_bytes=half),),
    )  # fmt: skip
    file = tmp_path / "half.html"
    file.write_text(render_html(kept), encoding="utf-8")
    page = browser.new_page()
    page.goto(file.as_uri())
    text = page.locator('[data-item="0"]').text_content()
    page.close()

    assert format_bytes(half) == "42.2 KiB"
    assert "42.2 KiB" in text


def test_edges_have_the_names_of_arguments(seen: Seen) -> None:
    """Where a node has several, the edge to each says which it is."""
    assert seen.page.locator("#picture .argument").all_text_contents() == ["self"]


def test_memory_is_a_map_and_a_curve(seen: Seen) -> None:
    """A cell for each module by its bytes, links into the picture, and what each node frees."""
    seen.page.keyboard.press("m")
    memory = seen.page.locator("#memory")

    assert "8 B held: " in memory.inner_text()
    assert memory.locator(".cell").count() == 1
    assert memory.locator(".curve path").count() == 2
    assert "#1 MulBackward0 frees 8 B, 0 B left" in " ".join(memory.inner_text().split())

    memory.locator("a.cell").click()

    assert "scale" in seen.page.locator("#panel h2").inner_text()

    seen.page.keyboard.press("m")

    assert seen.page.locator("#stage").is_visible()


def test_opening_keeps_what_is_there(seen: Seen) -> None:
    """A box that stays is the same element, moved; what was closed and opened again is complete."""
    seen.page.evaluate("document.querySelector('[data-item=\"3\"]').dataset.mark = 'kept'")
    places = (
        "[...document.querySelectorAll('#picture .node')].map((box) => box.parentNode.getAttribute('transform')).sort()"
    )
    before = seen.page.evaluate(places)
    seen.click_title(-1)

    assert seen.box(3).get_attribute("data-mark") == "kept"
    assert seen.page.evaluate(places) != before

    seen.box(-1).click()

    assert seen.page.evaluate(places) == before
    assert seen.page.locator('[data-leaf="5"]').count() == 1


def test_warnings_of_the_capture_are_told(seen: Seen) -> None:
    """A button says how many there are, and shows them."""
    seen.page.get_by_role("button", name="1 warning").click()

    assert f"odd: {HOSTILE}" in seen.page.locator("#panel").inner_text()
    assert seen.page.locator("img").count() == 0
