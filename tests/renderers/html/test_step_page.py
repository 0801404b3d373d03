"""The page of a step's memory, in a Chromium; skipped where there is none."""

from pathlib import Path
from typing import Any

import pytest
from browser_page import opened
from msgspec.structs import replace
from step_record import step_record, two_devices

from gradinspect.renderers.html.step_page import render_step_page

pytestmark = pytest.mark.slow


def test_a_moment_that_is_clicked_shows_who_is_alive(browser: Any, tmp_path: Path) -> None:
    """The peak at first; what is not among the largest is summed up; names make no element; nothing is requested."""
    file = tmp_path / "step.html"
    file.write_text(render_step_page(step_record("<b>train</b>.py", "<i>weight"), 4096), encoding="utf-8")
    with opened(browser, file, width=1000, height=900) as seen:
        look_at(seen.page)


def test_a_device_is_chosen(browser: Any, tmp_path: Path) -> None:
    """Its curve, and what was alive there."""
    file = tmp_path / "step.html"
    file.write_text(render_step_page(two_devices()), encoding="utf-8")
    with opened(browser, file, width=1000, height=900) as seen:
        seen.page.locator("#device").select_option(index=2)

        assert seen.page.locator("#moment").inner_text() == "forward of step 1: 3.5 KiB alive, the peak"


def test_equal_blocks_are_one_row_and_a_phone_does_not_scroll_sideways(browser: Any, tmp_path: Path) -> None:
    """With the least and the greatest of each, and the odd one; two are read one by one, and long names are wrapped."""
    record = step_record()
    long = "encoder_of_a_long_name." * 9
    names = [*(f"{long}h.{block}.weight" for block in (0, 1, 2, 5)), "a.0.bias", "a.1.bias"]
    spans = [replace(record.spans[0], name=name, num_bytes=place * 512) for place, name in enumerate(names, 1)]
    spans += [replace(spans[0], name=f"odd.{place}", num_bytes=1 << 10 + 2 * (place == 2)) for place in range(4)]
    file = tmp_path / "step.html"
    file.write_text(render_step_page(replace(record, spans=tuple(spans))), encoding="utf-8")
    with opened(browser, file, width=390, height=844) as seen:
        text = seen.page.locator("#alive").inner_text()

        assert f"{long}h.0,1,2,5.weight ×4, 512 B to 2.0 KiB each" in text
        assert "odd.0-3 ×4, 1.0 KiB to 4.0 KiB each, odd.2: 4.0 times the others" in text
        assert "a.0.bias" in text
        assert "a.1.bias" in text
        assert seen.page.evaluate("document.documentElement.scrollWidth") == 390


def test_a_phone_has_a_curve_that_can_be_read(browser: Any, tmp_path: Path) -> None:
    """Its words are as high as on a wide screen, nothing reaches outside, and a click finds the same moment."""
    file = tmp_path / "step.html"
    file.write_text(render_step_page(step_record(), 1 << 20), encoding="utf-8")
    heights = "[...document.querySelectorAll('#curve text')].map((one) => one.getBoundingClientRect().height)"
    outside = (
        "[...document.querySelectorAll('#curve text')].map((one) => one.getBoundingClientRect())"
        ".filter((one) => one.left < 0 || one.right > window.innerWidth).length"
    )
    with opened(browser, file, width=390, height=844) as seen:
        box = seen.page.locator("#curve svg").bounding_box()
        seen.page.mouse.click(box["x"] + box["width"] * 0.25, box["y"] + 99)

        assert min(seen.page.evaluate(heights)) >= 10
        assert seen.page.evaluate(outside) == 0
        assert seen.page.locator("#moment").inner_text() == "before the first step: 4.0 KiB alive"

        seen.page.set_viewport_size({"width": 1000, "height": 800})

        assert seen.page.locator("#curve svg").bounding_box()["width"] > 860
        assert seen.page.locator("#moment").inner_text() == "before the first step: 4.0 KiB alive"


def test_a_name_is_broken_between_its_parts_and_copies_are_counted_once(browser: Any, tmp_path: Path) -> None:
    """Not after a hyphen; equal blocks of two storages each are as many storages as there are."""
    record = step_record()
    spans = [
        replace(record.spans[1], name=f"encoder_blocks.{place}.attention_of_heads.out_proj", num_storages=2)
        for place in range(12)
    ]
    file = tmp_path / "step.html"
    file.write_text(render_step_page(replace(record, spans=tuple(spans))), encoding="utf-8")
    tops = (
        "[...document.querySelectorAll('#alive .whole')].map((one) => [one.textContent, one.getClientRects().length])"
    )
    with opened(browser, file, width=390, height=844) as seen:
        seen.page.locator("#peak").click()
        pieces = dict(seen.page.evaluate(tops))
        text = seen.page.locator("#alive").inner_text()

    assert "encoder_blocks.0-11.attention_of_heads.out_proj ×24, 2.0 KiB in each of 12" in text
    assert pieces["blocks.0-11."] == 1


def look_at(page: Any) -> None:
    """Go from the peak to the start, and one point on."""
    moment, alive = page.locator("#moment"), page.locator("#alive")

    assert page.locator("#title").inner_text() == "<b>train</b>.py"
    assert page.locator("header #notes").inner_text() == "A note."
    assert page.locator("#left-out").inner_text().startswith("Not counted: ")
    assert moment.inner_text() == "backward of step 1: 7.0 KiB alive, the peak"
    assert "<i>weight" in alive.inner_text()
    assert "aten.mm ×2" in alive.inner_text()
    assert "others, each smaller" in alive.inner_text()

    box = page.locator("#curve svg").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.12, box["y"] + box["height"] * 0.5)

    assert moment.inner_text() == "before the first step: 4.0 KiB alive"
    assert "others" not in alive.inner_text()

    page.locator("#place").press("ArrowRight")

    assert moment.inner_text() == "forward of step 1: 6.0 KiB alive"
