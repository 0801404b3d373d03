"""The SVG of a graph too large for Graphviz."""

import re
import xml.etree.ElementTree as ET

from factories import graph, leaf, op, saved
from hypothesis import given, settings
from strategies import examples, graphs

from gradinspect.analyses.structure.focus import Focus, focus_graph
from gradinspect.graph import Frame, Graph, ModuleCall, Root, Storage
from gradinspect.renderers.picture.colors.palettes import DARK
from gradinspect.renderers.picture.dot.scene import set_scene
from gradinspect.renderers.picture.plan.drawing import plan_drawing
from gradinspect.renderers.picture.plan.parts import DrawOptions
from gradinspect.renderers.picture.rows.svg import render_large_svg

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</text><script>alert(1)</script>&\"'\x1b[2J\ud800"


def drawn(whole: Graph, **options: object) -> ET.Element:
    """Draw all of a graph, and parse it."""
    wanted = DrawOptions(full=True, max_boxes=None, **options)  # type: ignore[arg-type]
    drawing = plan_drawing(whole, wanted)
    text = render_large_svg(set_scene(whole, wanted, [box.ids for box in drawing.boxes]), drawing)
    return ET.fromstring(text.encode())  # noqa: S314  # our own output


def words(svg: ET.Element) -> list[str]:
    """List what a reader sees."""
    return ["".join(text.itertext()) for text in svg.iter(f"{SVG}text")]


def small() -> Graph:
    """A product of a weight that is used twice, a module, a line."""
    return graph(
        op("MulBackward0", 1, 2, module=0, frame=0, saved=(saved("_saved_self", 2, storage=0),)),
        op("ExpBackward0", 2),
        leaf("w", 3),
        modules=(ModuleCall(path="fc", class_name="Linear"),),
        frames=(Frame(file="a.py", line=3, code="y = w * x"),),
        storages=(Storage(num_bytes=8),),
    )


def test_a_box_tells_what_a_reader_asks() -> None:
    """Class, number, shape, bytes, module, leaves; title and description; the root and the caption."""
    svg = drawn(small())
    box = next(group for group in svg.iter(f"{SVG}g") if group.get("id") == "n0")

    assert [text.text for text in box.iter(f"{SVG}text")] == [
        "fc", "MulBackward0", "#0 · f32[2, 3] · 8 B held", "+= w f32[3]",
    ]  # fmt: skip
    assert box.findtext(f"{SVG}title") == "#0 MulBackward0"
    assert (box.findtext(f"{SVG}desc") or "").splitlines()[1] == "a.py:3  y = w * x"
    assert {"↓ root 0", "3 nodes, 3 edges, 1 leaf"} <= set(words(svg))


def test_what_is_no_line_is_a_reference_at_both_ends() -> None:
    """A box that many lead to is named at each of them, with a link, and names some of them."""
    fan = graph(*(op(f"Op{place}Backward0", 30) for place in range(30)), op("ExpBackward0", None), roots=())
    svg = drawn(fan)
    links = [link.get("href") for link in svg.iter(f"{SVG}a")]

    assert links.count("#n30") == 30
    assert "← #0 #1 #2 and 27 more" in words(svg)


def test_options_of_a_picture_hold() -> None:
    """Dark, filled, linked, of a part of a graph, with chains of views."""
    part, cut = focus_graph(small(), Focus(around="#1", radius=0))
    views = graph(op("ViewBackward0", 1), op("TBackward0", 2), op("ExpBackward0", None), roots=(0,))

    assert DARK.paper in "".join(style.text or "" for style in drawn(small(), theme="dark").iter(f"{SVG}style"))
    assert any("fill:" in rect.get("style", "") for rect in drawn(small(), color_by="bytes").iter(f"{SVG}rect"))
    assert [link.get("href") for link in drawn(small(), links=("https://h/a.py#L3",)).iter(f"{SVG}a")] == [
        "https://h/a.py#L3"
    ]
    assert any(text.startswith("#1 ·") for text in words(drawn(part, cut=cut)))
    assert "View → T" in words(drawn(views, fold_shapes=True))


def test_hostile_names_stay_text() -> None:
    """Whatever a program calls its things is shown; nothing is an element or a control character."""
    hostile = graph(
        op(HOSTILE, 1, module=0, frame=0, function=HOSTILE), leaf(HOSTILE, 3), source=HOSTILE,
        modules=(ModuleCall(path=HOSTILE, class_name=HOSTILE),), frames=(Frame(file=HOSTILE, line=1, code=HOSTILE),),
    )  # fmt: skip
    svg = drawn(Graph(**{**{name: getattr(hostile, name) for name in hostile.__struct_fields__},
                         "roots": (Root(node=0, name=HOSTILE),)}))  # fmt: skip

    assert not list(svg.iter(f"{SVG}script"))
    assert any("<script>alert(1)</script>" in text for text in words(svg))


def test_modules_are_framed() -> None:
    """A frame has the name of its call, with its parent if that is an index, its class, its size and its bytes."""
    odd = graph(
        op("MulBackward0", 1, module=1, saved=(saved("_saved_self", 2, storage=0),)),
        op("ExpBackward0", None, module=1),
        modules=(ModuleCall(path="", class_name="Net"), ModuleCall(path="3", class_name=HOSTILE, parent=0)),
        storages=(Storage(num_bytes=8),),
    )  # fmt: skip
    svg = drawn(odd)
    shown = words(svg)

    assert len([rect for rect in svg.iter(f"{SVG}rect") if rect.get("class") == "f"]) == 2
    assert "Net  2 nodes · 8 B held" in shown
    assert any(text.startswith("model.3  </text><script>") for text in shown)
    assert not list(svg.iter(f"{SVG}script"))


@settings(max_examples=examples(40), deadline=None)
@given(graphs())
def test_nothing_is_lost(whole: Graph) -> None:
    """Each node that is no leaf is a box, and each arrow a line or a reference."""
    svg = drawn(whole)
    ids = [group.get("id") for group in svg.iter(f"{SVG}g") if re.fullmatch(r"n\d+", group.get("id") or "")]

    assert sorted(f"n{number}" for number, node in enumerate(whole.nodes) if node.kind != "accumulate_grad") == sorted(
        filter(None, ids)
    )
