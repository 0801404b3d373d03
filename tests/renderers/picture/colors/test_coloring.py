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
from strategies import examples, gradients, graphs

from gradinspect.errors import GradInspectError
from gradinspect.graph import Frame, Gradients, Graph, ModuleCall, NodeGradients
from gradinspect.renderers.picture.colors.coloring import (
    COLORINGS,
    color_by_bytes,
    color_by_flops,
    color_by_gradient,
    no_gradient,
    not_finite,
    zero,
)
from gradinspect.renderers.picture.colors.kinds import color_by_dtype
from gradinspect.renderers.picture.colors.looks import Look
from gradinspect.renderers.picture.colors.palettes import DARK, LIGHT, Palette, luminance
from gradinspect.renderers.picture.colors.palettes import contrast as contrast_of
from gradinspect.renderers.picture.dot.document import render_dot
from gradinspect.renderers.picture.graphviz import find_engine, lay_out
from gradinspect.renderers.picture.plan.parts import ColorBy, DrawOptions

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
    """Return the contrast of text and fill."""
    return contrast_of(look.fill, look.ink)


@given(st.lists(st.floats(1e-30, 1e30), min_size=3, max_size=3))
def test_text_can_be_read_and_larger_is_darker(norms: list[float]) -> None:
    """On every fill of the scale, wherever a norm is on it."""
    coloring = color_by_gradient(watched(*sorted(norms)), [], LIGHT)
    looks = [coloring.look(range(node, node + 1)) for node in range(3)]
    lights = [luminance(look.fill) for look in [*looks, *(swatch.look for swatch in coloring.scale)]]

    assert all(contrast(look) >= 4.5 for look in looks)
    assert lights[:3] == sorted(lights[:3], reverse=True)
    assert lights[3:] == sorted(lights[3:], reverse=True)


def test_a_factor_of_ten_is_the_least_range() -> None:
    """Norms that hardly differ look alike; the ends of the scale are the ends of the ramp."""
    near = color_by_gradient(watched(1.0, 1.01), [], LIGHT)
    far = color_by_gradient(watched(1.0, 1e-9), [], LIGHT)

    assert near.look(range(1)).fill == near.look(range(1, 2)).fill or abs(
        luminance(near.look(range(1)).fill) - luminance(near.look(range(1, 2)).fill)
    ) < 0.01  # fmt: skip
    assert (far.look(range(1)).fill, far.look(range(1, 2)).fill) == (LIGHT.ramp[-1], LIGHT.ramp[0])
    assert [swatch.text for swatch in far.scale] == ["1e-09", "2e-07", "3e-05", "6e-03", "1e+00"]


def test_what_is_not_on_the_scale_has_a_look_of_its_own() -> None:
    """Zero, none, NaN, Inf; a module is marked when anything inside is not finite. Only what is there is explained."""
    coloring = color_by_gradient(watched(1.0, 0.0, None, NAN, float("inf"), 0.5), [], LIGHT)
    looks = [coloring.look(range(node, node + 1)) for node in range(6)]

    assert looks[1:5] == [zero(LIGHT), no_gradient(LIGHT), *[not_finite(LIGHT)] * 2]
    assert coloring.look(range(4)) == not_finite(LIGHT)
    assert coloring.look(range(2)) == looks[0]
    assert coloring.leaf(6) == no_gradient(LIGHT)
    assert [mark.words for mark in coloring.marks] == ["exactly zero", "no gradient", "NaN or Inf"]
    assert all(
        contrast(look) >= 4.5
        for palette in (LIGHT, DARK)
        for look in (zero(palette), no_gradient(palette), not_finite(palette))
    )


def test_the_picture_tells_norm_and_scale() -> None:
    """In the box, in the tooltip, in the caption."""
    dot = render_dot(watched(1.0, 1e-6, 0.0), DrawOptions(color_by="grad"))
    boxes = [line for line in dot.splitlines() if re.match(r"  n\d \[", line)]

    assert 'fillcolor="#08306B" style="filled,rounded" fontcolor="#FFFFFF"' in boxes[0]
    assert 'fillcolor="#F0F6FC" style="filled,rounded" fontcolor="#000000"' in boxes[1]
    assert "f32[2, 3] · norm 1.0e-06" in boxes[1]
    assert r"#1 MulBackward0\ngradient norm 1.0e-06" in boxes[1]
    assert 'color="#C04000" penwidth="2"' in boxes[2]
    assert "color: norm of the incoming gradient, log scale" in dot
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
    options = DrawOptions(color_by="grad", depth=1, max_boxes=8)
    dot = render_dot(record, options)
    (strip,) = re.findall(r"<TR>((?:<TD WIDTH=.*?</TD>)+)</TR>", dot)

    fills = re.findall(r'BGCOLOR="(#\w+)"', strip)

    assert len(fills) == copies - 1  # the one that leads to the leaf is not like the others
    assert len(set(fills)) == len(fills)
    assert strip.count(">0&#160;<") == 1


def test_bytes_and_dtypes() -> None:
    """Closed boxes count all that is inside; two dtypes have two fills."""
    record = product_plus_two()
    by_bytes = color_by_bytes(record, [range(1), range(2)], LIGHT)
    mixed = graph(op("A", 1), op("B", 2, forward_outputs=(tensor_info(2, dtype="bfloat16"),)), leaf("w", 10))
    by_dtype = color_by_dtype(mixed, [range(2)], LIGHT)

    assert by_bytes.look(range(1)).words == "8 B held"
    assert by_bytes.look(range(1, 2)).words == "nothing held"
    assert [swatch.text for swatch in by_dtype.scale] == ["bf16", "f32"]
    assert by_dtype.look(range(1)).fill != by_dtype.look(range(1, 2)).fill
    assert by_dtype.look(range(2)).words == "several dtypes"
    assert [mark.text for mark in by_dtype.marks] == ["mixed"]


def test_a_box_is_as_dark_as_its_share_of_the_largest() -> None:
    """Half of the bytes or of the work has the color in the middle of the scale, nothing and the most have its ends."""
    record = graph(
        *(op("MmBackward0", place + 1, flops=count) for place, count in enumerate((100, 50, 0))), leaf("w", 4)
    )
    by_flops = color_by_flops(record, [range(place, place + 1) for place in range(3)], LIGHT)
    fills = [by_flops.look(range(place, place + 1)).fill for place in range(3)]

    assert fills == [by_flops.scale[4].look.fill, by_flops.scale[2].look.fill, LIGHT.card]
    assert [swatch.text.split()[0] for swatch in by_flops.scale] == ["0", "25", "50", "75", "100"]
    assert "linear scale" in by_flops.title


def placed() -> Graph:
    """Nodes in two classes of modules and two files, one on a GPU."""
    calls = (
        ModuleCall(path="", class_name="Net"),
        ModuleCall(path="a", class_name="Linear", parent=0),
        ModuleCall(path="b", class_name="ReLU", parent=0),
    )
    return graph(
        op("SumBackward0", 1),
        op("ReluBackward0", 2, module=2, frame=1),
        op("AddmmBackward0", 3, module=1, frame=0, forward_outputs=(replace(tensor_info(2), device="cuda:0"),)),
        op("TBackward0", 4, module=1, frame=0),
        leaf("w", 10),
        modules=calls,
        frames=(Frame(file="model.py", line=1), Frame(file="x" * 90, line=2)),
    )


@pytest.mark.parametrize(
    ("by", "scale", "words", "closed"),
    [
        ("device", ["cpu", "cuda:0"], ["cpu", "cpu", "cuda:0", "cpu"], "several devices"),
        ("module", ["Linear", "Net", "ReLU"], ["outside of any module", "ReLU", "Linear", "Linear"], "Net"),
        ("file", ["model.py", "x" * 15 + "…" + "x" * 16],
         ["no source line", "x" * 90, "model.py", "model.py"], "several files"),
    ],
)  # fmt: skip
def test_kinds(by: ColorBy, scale: list[str], words: list[str], closed: str) -> None:
    """Each kind has a fill, in the legend by name; a closed module is of its own class, else a box may be mixed."""
    drawn = [*(range(node, node + 1) for node in range(4)), range(1, 4)]
    coloring = COLORINGS[by](placed(), drawn, DARK)
    looks = [coloring.look(ids) for ids in drawn]

    assert [swatch.text for swatch in coloring.scale] == scale
    assert [look.words for look in looks] == [*words, closed]
    assert len({look.fill for look in looks[1:3]}) == 2
    assert all(contrast(look) >= 4.5 for look in looks)
    assert {mark.words for mark in coloring.marks} <= {
        "no source line",
        "outside of any module",
        f"{closed} in one box",
    }


def test_more_kinds_than_fills() -> None:
    """The most frequent have a fill each; the others share one, and the legend says how many they are."""
    calls = tuple(ModuleCall(path=str(number), class_name=f"Class{number:02}") for number in range(12))
    nodes = [op("ExpBackward0", number + 1, module=number // 2) for number in range(20)]
    many = graph(*nodes, *(op("SinBackward0", 22 + n if n else None, module=10 + n) for n in range(2)), modules=calls)
    coloring = COLORINGS["module"](many, [range(node, node + 1) for node in range(22)], LIGHT)
    fills = {coloring.look(range(2 * number, 2 * number + 1)).fill for number in range(8)}

    assert len(fills) == len(coloring.scale) == len(LIGHT.kinds) == 8
    assert [(mark.text, mark.words) for mark in coloring.marks] == [("other", "4 more")]
    assert coloring.look(range(20, 21)).fill == LIGHT.plain


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_words_can_be_told_from_what_is_behind_them(palette: Palette) -> None:
    """Every ink on every ground where it stands has a contrast of 4.5 at least."""
    grounds = (palette.paper, palette.card, palette.other, palette.leaf, palette.shared, palette.custom, palette.closed,
               palette.copies, palette.plain, *palette.clusters, *palette.plain_clusters)  # fmt: skip
    pairs = [(ink, ground) for ink in (palette.ink, palette.soft, palette.quiet) for ground in grounds]
    pairs += [(palette.cut, ground) for ground in (palette.paper, *palette.clusters, *palette.plain_clusters)]
    pairs += [(palette.shared_line, palette.shared), (palette.custom_line, palette.custom)]
    pairs += [(palette.root_ink, palette.root), (palette.accumulate_ink, palette.accumulate)]

    assert not [(ink, ground) for ink, ground in pairs if contrast_of(ink, ground) < 4.5]


def test_dark_is_dark() -> None:
    """A dark picture has no light ground but that of marks, and is the same picture otherwise."""
    light, dark = (render_dot(placed(), DrawOptions(theme=theme, depth=0)) for theme in ("light", "dark"))
    colorless = [re.sub(r"#[0-9A-F]{6}", "", dot) for dot in (light, dark)]

    assert colorless[0] == colorless[1]
    assert f'bgcolor="{DARK.paper}"' in dark
    assert not {LIGHT.card, LIGHT.leaf, LIGHT.closed, *LIGHT.clusters} & set(re.findall(r"#[0-9A-F]{6}", dark))


def test_a_graph_without_gradients_is_one_sentence() -> None:
    """There is nothing to color by."""
    with pytest.raises(GradInspectError, match=r"The graph of 'train\.py' was recorded without gradients"):
        render_dot(product_plus_two(), DrawOptions(color_by="grad"))


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(st.data(), st.sampled_from(sorted(COLORINGS)), st.booleans())
def test_any_graph_draws_in_any_color(data: st.DataObject, by: str, full: bool) -> None:
    """Whatever is in it; without a color the picture does not know of gradients."""
    record = data.draw(graphs())
    record = replace(record, gradients=data.draw(gradients(len(record.nodes))))
    dot = render_dot(record, DrawOptions(color_by=by, full=full, depth=1))  # type: ignore[arg-type]
    ET.fromstring(lay_out(dot, "svg", find_engine(), time_limit_s=30))  # noqa: S314  # our own output

    assert render_dot(record) == render_dot(replace(record, gradients=None))


def test_flops_are_of_forward_and_backward() -> None:
    """A box has the sum of its nodes; one without a formula is marked, and the legend says so."""
    whole = graph(
        op("MmBackward0", 1, flops=1_000_000, backward_flops=2_000_000), op("TanhBackward0", 2),
        op("MmBackward0", None, flops=500),
    )  # fmt: skip
    coloring = color_by_flops(whole, [range(1), range(1, 2), range(2, 3)], LIGHT)

    assert coloring.look(range(3)).words == "3.0 M, forward and backward"
    assert coloring.look(range(1, 2)).words == "no formula for its FLOPs"
    assert luminance(coloring.look(range(1)).fill) < luminance(coloring.look(range(2, 3)).fill)
    assert [mark.words for mark in coloring.marks] == ["no formula"]
