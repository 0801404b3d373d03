"""The curve of the memory of whole steps."""

import re
import xml.etree.ElementTree as ET

import pytest
from msgspec.structs import replace
from step_record import step_record, two_devices

from gradinspect.renderers.picture.charts import HEIGHT, TOP
from gradinspect.renderers.picture.step_curve import render_step_curve, render_step_curves

SVG = "{http://www.w3.org/2000/svg}"


def drawn(limit: int | None = None, source: str = "train.py") -> ET.Element:
    """Draw it."""
    return ET.fromstring(render_step_curve(step_record(source), limit))  # noqa: S314  # ours


def test_each_kind_has_its_area() -> None:
    """As high as its bytes: the areas together reach the top at the peak."""
    areas = {one.get("class"): one.get("d", "") for one in drawn().iter(f"{SVG}path") if "area" in one.get("class", "")}
    heights = {name: [float(y) for y in re.findall(r"L[\d.]+ ([\d.]+)", path)] for name, path in areas.items()}

    assert list(areas) == ["area parameter", "area saved", "area temporary"]
    assert min(heights["area temporary"]) == TOP
    assert min(heights["area parameter"]) == pytest.approx(TOP + HEIGHT * 3072 / 7168, abs=0.1)


def test_the_limit_is_a_line() -> None:
    """Also above the curve."""
    texts = ["".join(one.itertext()) for one in drawn(2**14).iter(f"{SVG}text")]

    assert "limit 16.0 KiB" in texts
    assert "peak 7.0 KiB (predicted)" in texts
    assert "parameters: 4.0 KiB at the peak" in texts


def test_a_limit_that_is_far_above_leaves_the_curve_its_height() -> None:
    """It is said, as the curve would be a line at the bottom."""
    texts = ["".join(one.itertext()) for one in drawn(2**20).iter(f"{SVG}text")]
    lines = [one for one in drawn(2**20).iter(f"{SVG}path") if one.get("class") == "limit"]
    (peak,) = [one.get("d", "") for one in drawn(2**20).iter(f"{SVG}path") if one.get("class") == "peak"]

    assert "limit 1.0 MiB ↑" in texts
    assert lines == []
    assert f" {TOP}.0l" in peak


def test_names_make_no_element() -> None:
    """They come from the program."""
    hostile = "<script>alert(1)</script>&\x1b.py"

    assert not list(drawn(source=hostile).iter(f"{SVG}script"))
    assert any("<script>" in (one.text or "") for one in drawn(source=hostile).iter(f"{SVG}text"))


def test_nothing_alive_is_drawn_too() -> None:
    """A program may allocate nothing that is counted."""
    empty = replace(step_record(), alive=(), curve=(), spans=(), peak_bytes=0)

    assert ET.fromstring(render_step_curve(empty)).tag == f"{SVG}svg"  # noqa: S314  # ours


def test_each_device_has_a_curve_of_its_own() -> None:
    """One below the other, in one picture; the limit is drawn where it is meant."""
    root = ET.fromstring(render_step_curves(two_devices(), 4096))  # noqa: S314  # ours
    curves = root.findall(f"{SVG}svg")
    heads = [curve.find(f"{SVG}text").text for curve in curves]  # type: ignore[union-attr]  # it has one
    tops = [int(curve.get("y", "")) for curve in curves]

    assert heads == [
        "peak 7.0 KiB on cuda:1 (measured)", "peak 8.8 KiB on cpu (measured)", "peak 3.5 KiB on cuda:0 (measured)"
    ]  # fmt: skip
    assert [bool(curve.findall(f"{SVG}path[@class='limit']")) for curve in curves] == [True, False, True]
    assert tops[0] == 0
    assert [top + int(curve.get("height", "")) for top, curve in zip(tops, curves, strict=True)] == [
        *tops[1:], int(root.get("height", ""))
    ]  # fmt: skip
