"""Titles and descriptions for those who do not see the picture."""

import xml.etree.ElementTree as ET

import pytest
from factories import graph, leaf, op, product_plus_two, saved
from hypothesis import given, settings
from strategies import examples, graphs

from gradinspect.graph import Frame, Graph, ModuleCall, Storage
from gradinspect.renderers.picture.graphviz import Engine, find_engine
from gradinspect.renderers.picture.picture import draw
from gradinspect.renderers.picture.plan.parts import DrawOptions

SVG = "{http://www.w3.org/2000/svg}"
ENGINES = list(dict.fromkeys((find_engine(), find_engine(path=""))))
HOSTILE = "</title><script>alert(1)</script>&#10;\n\"'"


def drawn(whole: Graph, engine: Engine, **options: object) -> ET.Element:
    """Draw a graph, and parse the picture."""
    picture = draw(whole, "svg", DrawOptions(**options), engine=engine)  # type: ignore[arg-type]
    return ET.fromstring(picture.content)  # noqa: S314  # our own output


def described(svg: ET.Element) -> dict[str, str]:
    """Return the descriptions by title."""
    return {
        (group.findtext(f"{SVG}title") or "").replace("\u2060", ""): group.findtext(f"{SVG}desc") or ""
        for group in svg.iter(f"{SVG}g")
        if group.get("class")
    }


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.program.name)
def test_each_part_has_a_title(engine: Engine) -> None:
    """Nodes, leaves, modules, roots and arrows are named as a reader knows them, with their facts below."""
    whole = graph(
        op("MulBackward0", 1, 2, module=0, frame=0, saved=(saved("_saved_self", 2, storage=0),)),
        op("ExpBackward0", 2, module=0), leaf("w", 3),
        modules=(ModuleCall(path="fc", class_name="Linear"),), frames=(Frame(file="a.py", line=3, code="y = w * x"),),
        storages=(Storage(num_bytes=8),),
    )  # fmt: skip
    parts = described(drawn(whole, engine))

    assert parts["Autograd graph of train.py"] == ""
    assert parts["fc (Linear), call 1"] == ""
    assert parts["root"] == "f32[2, 3]"
    assert parts["#0 MulBackward0"].replace("\xa0", " ").splitlines() == [
        "in fc (Linear), call 1", "a.py:3  y = w * x", "_saved_self = f32[2], 8 B, activation",
    ]  # fmt: skip
    assert parts["#2 AccumulateGrad of parameter w"].splitlines() == ["f32[3]", ".grad is not set"]
    assert {"root to #0 MulBackward0", "#0 MulBackward0 to #1 ExpBackward0"} <= parts.keys()


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.program.name)
def test_hostile_names_stay_text(engine: Engine) -> None:
    """A name ends no title and starts no element."""
    whole = graph(op(HOSTILE, 1, None, function=HOSTILE), leaf(HOSTILE, 3), source=HOSTILE)
    svg = drawn(whole, engine, none_edges=True)

    assert not list(svg.iter(f"{SVG}script"))
    assert any("<script>alert(1)</script>" in title for title in described(svg))


@settings(max_examples=examples(15), deadline=None)
@given(graphs())
def test_nothing_but_titles_changes(any_graph: Graph) -> None:
    """Any picture is well-formed, every node, leaf and cluster has a title of ours, and text is text."""
    svg = drawn(any_graph, ENGINES[0], saved=True, none_edges=True)
    groups = [group for group in svg.iter(f"{SVG}g") if group.get("class") in {"node", "cluster", "graph"}]

    assert all(group.findtext(f"{SVG}title") for group in groups)
    assert list(svg.iter(f"{SVG}text"))
    assert not list(svg.iter(f"{SVG}image"))


def test_text_stays_text() -> None:
    """What a reader sees can be searched and copied."""
    words = {"".join(text.itertext()) for text in drawn(product_plus_two(), ENGINES[0]).iter(f"{SVG}text")}

    assert {"MulBackward0", "AddBackward0", "a f32[1] 2 uses", "root f32[1]"} <= words
