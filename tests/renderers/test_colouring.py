"""Filled pictures: order, readable text, a look of its own for what is not on the scale."""

import re
import xml.etree.ElementTree as ET
from math import isnan

import pytest
from factories import gradient_stats as stats
from factories import graph, leaf, op, product_plus_two, tensor_info
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from strategies import gradients, graphs

from gradinspect.errors import GradInspectError
from gradinspect.graph import Gradients, Graph, ModuleCall, NodeGradients
from gradinspect.renderers.colouring import (
    COLOURINGS,
    NO_GRADIENT,
    NOT_FINITE,
    RAMP,
    ZERO,
    Look,
    colour_by_bytes,
    colour_by_dtype,
    colour_by_gradient,
    luminance,
)
from gradinspect.renderers.dot import render_dot
from gradinspect.renderers.drawing_parts import DrawOptions
from gradinspect.renderers.graphviz_engine import find_engine, lay_out

NAN = float("nan")


def watched(*norms: float | None) -> Graph:
    """Make a chain of nodes with these norms; None for one that did not run."""
    record = graph(*(op("MulBackward0", number + 1) for number in range(len(norms))), leaf("w", 10))
    nodes = tuple(
        NodeGradients(node=node, order=node, incoming=(stats(norm, bad=int(isnan(norm))),))
        for node, norm in enumerate(norms)
        if norm is not None
    )
    return replace(record, gradients=Gradients(nodes=nodes))


def contrast(look: Look) -> float:
    """Return the contrast of text and fill, as WCAG 2 defines it."""
    light, dark = sorted((luminance(look.fill), luminance(look.ink)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@given(st.lists(st.floats(1e-30, 1e30), min_size=3, max_size=3))
def test_text_can_be_read_and_larger_is_darker(norms: list[float]) -> None:
    """On every fill of the scale, wherever a norm is on it."""
    colouring = colour_by_gradient(watched(*sorted(norms)), [])
    looks = [colouring.look(range(node, node + 1)) for node in range(3)]
    lights = [luminance(look.fill) for look in [*looks, *(swatch.look for swatch in colouring.scale)]]

    assert all(contrast(look) >= 4.5 for look in looks)
    assert lights[:3] == sorted(lights[:3], reverse=True)
    assert lights[3:] == sorted(lights[3:], reverse=True)


def test_a_factor_of_ten_is_the_least_range() -> None:
    """Norms that hardly differ look alike; the ends of the scale are the ends of the ramp."""
    near = colour_by_gradient(watched(1.0, 1.01), [])
    far = colour_by_gradient(watched(1.0, 1e-9), [])

    assert near.look(range(1)).fill == near.look(range(1, 2)).fill or abs(
        luminance(near.look(range(1)).fill) - luminance(near.look(range(1, 2)).fill)
    ) < 0.01  # fmt: skip
    assert (far.look(range(1)).fill, far.look(range(1, 2)).fill) == (RAMP[-1], RAMP[0])
    assert [swatch.text for swatch in far.scale] == ["1e-09", "2e-07", "3e-05", "6e-03", "1e+00"]


def test_what_is_not_on_the_scale_has_a_look_of_its_own() -> None:
    """Zero, none, NaN, Inf; a module is marked when anything inside is not finite. Only what is there is explained."""
    colouring = colour_by_gradient(watched(1.0, 0.0, None, NAN, float("inf"), 0.5), [])
    looks = [colouring.look(range(node, node + 1)) for node in range(6)]

    assert looks[1:5] == [ZERO, NO_GRADIENT, NOT_FINITE, NOT_FINITE]
    assert colouring.look(range(4)) == NOT_FINITE
    assert colouring.look(range(2)) == looks[0]
    assert colouring.leaf(6) == NO_GRADIENT
    assert [mark.words for mark in colouring.marks] == ["exactly zero", "no gradient came", "NaN or Inf"]
    assert all(contrast(look) >= 4.5 for look in (ZERO, NO_GRADIENT, NOT_FINITE))


def test_the_picture_tells_norm_and_scale() -> None:
    """In the box, in the tooltip, in the caption."""
    dot = render_dot(watched(1.0, 1e-6, 0.0), DrawOptions(colour_by="grad"))
    boxes = [line for line in dot.splitlines() if re.match(r"  n\d \[", line)]

    assert 'fillcolor="#08306B" style="filled,rounded" fontcolor="#FFFFFF"' in boxes[0]
    assert 'fillcolor="#F0F6FC" style="filled,rounded" fontcolor="#000000"' in boxes[1]
    assert "f32[2, 3] · norm 1.0e-06" in boxes[1]
    assert r"#1 MulBackward0\ngradient norm 1.0e-06" in boxes[1]
    assert 'color="#C04000" penwidth="2"' in boxes[2]
    assert "fill: norm of the gradient that arrives, log scale" in dot
    assert ">1e-06<" in dot
    assert "exactly zero" in dot


def test_each_copy_of_a_repeat_has_a_cell() -> None:
    """Copies are not drawn, but how the gradient changes through them is."""
    copies = 9
    nodes = [op("MulBackward0", node + 1, module=1 + node // 2) for node in range(2 * copies)]
    calls = [ModuleCall(path=f"h.{copies - 1 - index}", class_name="Block", parent=0) for index in range(copies)]
    record = graph(*nodes, leaf("w", 10), modules=(ModuleCall(path="", class_name="Net"), *calls))
    ran = tuple(
        NodeGradients(node=node, order=node, incoming=(stats(0.0 if node > 13 else 10.0**-node),))
        for node in range(2 * copies)
    )
    record = replace(record, gradients=Gradients(nodes=ran))
    options = DrawOptions(colour_by="grad", depth=1, max_boxes=8)
    dot = render_dot(record, options)
    (strip,) = re.findall(r"<TR>((?:<TD WIDTH=.*?</TD>)+)</TR>", dot)

    fills = re.findall(r'BGCOLOR="(#\w+)"', strip)

    assert len(fills) == copies - 1  # the one that leads to the leaf is not like the others
    assert len(set(fills)) == len(fills)
    assert strip.count(">0&#160;<") == 1


def test_bytes_and_dtypes() -> None:
    """Closed boxes count all that is inside; two dtypes have two fills."""
    record = product_plus_two()
    by_bytes = colour_by_bytes(record, [range(1), range(2)])
    mixed = graph(op("A", 1), op("B", 2, forward_outputs=(tensor_info(2, dtype="bfloat16"),)), leaf("w", 10))
    by_dtype = colour_by_dtype(mixed, [range(2)])

    assert by_bytes.look(range(1)).words == "8 B saved"
    assert by_bytes.look(range(1, 2)).words == "nothing saved"
    assert [swatch.text for swatch in by_dtype.scale] == ["bf16", "f32"]
    assert by_dtype.look(range(1)).fill != by_dtype.look(range(1, 2)).fill
    assert by_dtype.look(range(2)).words == "several dtypes"
    assert [mark.text for mark in by_dtype.marks] == ["mixed"]


def test_a_graph_without_gradients_is_one_sentence() -> None:
    """There is nothing to colour by."""
    with pytest.raises(GradInspectError, match=r"The graph of 'train\.py' was recorded without gradients"):
        render_dot(product_plus_two(), DrawOptions(colour_by="grad"))


@settings(max_examples=40, deadline=None)
@given(st.data(), st.sampled_from(sorted(COLOURINGS)), st.booleans())
def test_any_graph_draws_in_any_colour(data: st.DataObject, by: str, full: bool) -> None:
    """Whatever is in it; without a colour the picture does not know of gradients."""
    record = data.draw(graphs())
    record = replace(record, gradients=data.draw(gradients(len(record.nodes))))
    dot = render_dot(record, DrawOptions(colour_by=by, full=full, depth=1))  # type: ignore[arg-type]
    ET.fromstring(lay_out(dot, "svg", find_engine(), time_limit_s=30))  # noqa: S314  # our own output

    assert render_dot(record) == render_dot(replace(record, gradients=None))
