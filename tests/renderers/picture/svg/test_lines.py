"""Lines of an SVG stay together in any font."""

import xml.etree.ElementTree as ET

import pytest
from factories import product_plus_two
from hypothesis import given, settings
from inline_snapshot import snapshot
from strategies import examples, graphs

from gradinspect.graph import Graph
from gradinspect.renderers.picture.dot.document import render_dot
from gradinspect.renderers.picture.graphviz import Engine, find_engine, lay_out
from gradinspect.renderers.picture.plan.parts import DrawOptions
from gradinspect.renderers.picture.svg.lines import join_lines

SVG = "{http://www.w3.org/2000/svg}"
ENGINES = list(dict.fromkeys((find_engine(), find_engine(path=""))))
NODE = """\
<g id="node1" class="node">
<polygon fill="white" points="0,0 100,0 100,-40 0,-40"/>
<text text-anchor="start" x="12" y="-20" font-size="9">h.</text>
<text text-anchor="start" x="20" y="-20" font-weight="bold">3</text>
<text text-anchor="start" x="14" y="-8">Add &lt;b&gt;</text>
</g>"""
CHIP = """\
<g id="node2" class="node">
<polygon points="0,0 9,0 9,9 0,9"/>
<polygon points="9,0 99,0 99,9 9,9"/>
<text x="11" y="-3" font-weight="bold">w</text>
<text x="30" y="-3"> f32[2]</text>
</g>"""
CAPTION = """\
<g id="graph0" class="graph">
<polygon points="0,0 9,0 9,9 0,9"/>
<text x="11" y="-3">train.py</text>
<text x="30" y="-3">&#160;backward</text>
<text x="90" y="-3">the next cell</text>
</g>"""


def texts_of(svg: str) -> list[list[str]]:
    """List the texts, each with its parts."""
    lines = [line for line in join_lines(svg).splitlines() if line.startswith("<text")]
    return [line.replace(' xml:space="preserve"', "").replace("<tspan", "\n<tspan").splitlines() for line in lines]


def test_a_line_in_a_box_is_one_text_from_its_middle() -> None:
    """Parts keep their fonts and follow each other; the line is in the middle of the outline."""
    assert texts_of(NODE) == snapshot(
        [
            [
                '<text text-anchor="middle" x="50.00" y="-20">',
                '<tspan font-size="9">h.</tspan>',
                '<tspan font-weight="bold">3</tspan></text>',
            ],
            ['<text text-anchor="middle" x="50.00" y="-8">', "<tspan>Add &lt;b&gt;</tspan></text>"],
        ]
    )


def test_a_line_elsewhere_keeps_its_start() -> None:
    """In a table of cells and in the caption; cells of one row stay apart."""
    assert texts_of(CHIP) == snapshot(
        [
            [
                '<text text-anchor="start" x="11" y="-3">',
                '<tspan font-weight="bold">w</tspan>',
                "<tspan> f32[2]</tspan></text>",
            ]
        ]
    )
    assert texts_of(CAPTION) == snapshot(
        [
            [
                '<text text-anchor="start" x="11" y="-3">',
                "<tspan>train.py</tspan>",
                "<tspan>&#160;backward</tspan></text>",
            ],
            ['<text x="90" y="-3">the next cell</text>'],
        ]
    )


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.program.name)
def test_both_programs_write_what_is_expected(engine: Engine) -> None:
    """The root's name and shape are one line in the middle of its box."""
    svg = join_lines(lay_out(render_dot(product_plus_two()), "svg", engine, time_limit_s=30).decode())
    words = {"".join(text.itertext()): text for text in ET.fromstring(svg).iter(f"{SVG}text")}  # noqa: S314  # ours

    assert words["root f32[1]"].get("text-anchor") == "middle"
    assert words["MulBackward0"].get("text-anchor") == "middle"
    assert words["a f32[1] 2 uses"].get("text-anchor") == "start"


@settings(max_examples=examples(15), deadline=None)
@given(graphs())
def test_no_word_is_lost(any_graph: Graph) -> None:
    """All text is there, in its order, whatever it is."""
    dot = render_dot(any_graph, DrawOptions(saved=True, none_edges=True))
    before = lay_out(dot, "svg", ENGINES[0], time_limit_s=30).decode()
    texts = ["".join(ET.fromstring(svg).itertext()) for svg in (before, join_lines(before))]  # noqa: S314  # ours

    assert "".join(texts[0].split()) == "".join(texts[1].split())
