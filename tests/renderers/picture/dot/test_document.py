"""DOT text: exact for a tiny graph, and safe for any."""

import re
import xml.etree.ElementTree as ET

import pytest
from factories import graph, leaf, op, product_plus_two, residual_blocks, saved
from hypothesis import given, settings
from inline_snapshot import snapshot
from msgspec import structs
from strategies import examples, graphs

from gradinspect.analyses.structure.focus import Focus, focus_graph
from gradinspect.analyses.structure.folding import Scope
from gradinspect.graph import CapturePoint, Frame, Graph, ModuleCall, Root, Storage
from gradinspect.renderers.picture.colors.palettes import LIGHT
from gradinspect.renderers.picture.dot.document import render_dot, write_dot
from gradinspect.renderers.picture.dot.scopes import ScopeLabels
from gradinspect.renderers.picture.dot.text import MAX_LABEL, WORD_JOINER, join_names, shorten
from gradinspect.renderers.picture.graphviz import find_engine, lay_out
from gradinspect.renderers.picture.plan.drawing import plan_drawing
from gradinspect.renderers.picture.plan.parts import MAX_CHIPS, DrawOptions

HOSTILE = [
    '"; } digraph x {', "</B><script>alert(1)</script>", "]]>", "<!--", ">", "&lt;", "&#92;N", "&amp;amp;",
    r"\N", r"\G\E\T", "\\", "a\\", "a\nb\r\tc", "nul\x00", "\x1b[31m", "\u202etxt", "\ud800",
    "имя слоя", "重み😀", "--", "a|b{c}", "''",
]  # fmt: skip
SVG = "{http://www.w3.org/2000/svg}"
XLINK_TITLE = "{http://www.w3.org/1999/xlink}title"
EVERYTHING = DrawOptions(none_edges=True, saved=True)


def svg_of(dot: str) -> ET.Element:
    """Draw DOT and parse the picture."""
    return ET.fromstring(lay_out(dot, "svg", find_engine(), time_limit_s=30))  # noqa: S314 - our own output


def texts(svg: ET.Element) -> list[str]:
    """List what a reader sees."""
    return ["".join(text.itertext()).replace("\xa0", " ") for text in svg.iter(f"{SVG}text")]


def statements(dot: str) -> list[str]:
    """List nodes and edges without their looks."""
    return [line.split(" [")[0].strip() for line in dot.splitlines()[6:-1]]


def test_tiny_graph_exactly() -> None:
    """`a * (a + 2)` has one box for each op, and the leaf `a` beside each of its two uses."""
    assert statements(render_dot(product_plus_two(), DrawOptions())) == snapshot(
        ["root0", "root0 -> n0", "n0", "n0_leaf2", "n0 -> n0_leaf2", "n1", "n1_leaf2", "n1 -> n1_leaf2", "n0 -> n1"]
    )


def test_node_looks_exactly() -> None:
    """A box tells class, shape and bytes; its tooltip tells the line and what is saved."""
    frames = (Frame(file="train.py", line=7, code="b = a * (a + 2)"),)
    node = op("MulBackward0", 1, shape=(2, 3), frame=0, saved=(saved("_saved_self", 2, 3, storage=0),))
    dot = render_dot(graph(node, leaf("a", 2, 3), frames=frames, storages=product_plus_two().storages))

    (box,) = [line for line in dot.splitlines() if line.startswith("  n0 [")]
    for start in (" tooltip", "<TR", "<TD FIXED", " fill", ' FIXEDSIZE="TRUE" WIDTH="64" HEIGHT="4">'):
        box = box.replace(start, f"\n{start.strip()}")
    assert box.splitlines() == snapshot(
        [
            '  n0 [label=<<TABLE BORDER="0" CELLSPACING="0" CELLPADDING="0">',
            "<TR><TD><B>MulBackward0</B></TD></TR>",
            '<TR><TD><FONT POINT-SIZE="8" COLOR="#4C4C4C">f32[2, 3] · 4 B held</FONT></TD></TR>',
            '<TR><TD ALIGN="LEFT"><TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0"',
            'FIXEDSIZE="TRUE" WIDTH="64" HEIGHT="4">',
            "<TR>",
            '<TD FIXEDSIZE="TRUE" WIDTH="64" HEIGHT="4" BGCOLOR="#00507D"></TD></TR></TABLE></TD></TR></TABLE>>',
            'tooltip="#0 MulBackward0\\ntrain.py:7  b = a * (a + 2)\\n_saved_self = f32[2, 3], 24 B, activation"',
            'fillcolor="#FFFFFF"]',
        ]
    )


def test_cut_edges_are_stubs_with_a_count() -> None:
    """What a focus has cut ends in a stub above or below its box, and the caption says what is left."""
    part, cut = focus_graph(product_plus_two(), Focus(around="#1", radius=0))
    dot = render_dot(part, DrawOptions(cut=cut, none_edges=True))

    assert statements(dot) == snapshot(
        ["n0", "n0_came", "n0_came -> n0", "n0_leaf1", "n0 -> n0_leaf1", "n0_none1", "n0 -> n0_none1"]
    )
    assert "1 edge cut" in dot
    assert "<B>1 of 2 nodes, with 1 of 1 leaf: within 0 of #1</B>" in dot
    assert "2 uses" in dot


def test_a_closed_box_counts_the_edges_that_are_cut_from_it() -> None:
    """What is not drawn of a part is counted at its box."""
    calls = (ModuleCall(path="a", class_name="Net"),)
    whole = graph(op("AddBackward0", 1, 2), op("ExpBackward0", 3, module=0), op("SinBackward0", 3, 4, module=0),
                  op("CosBackward0", 4), leaf("w", 3), modules=calls)  # fmt: skip
    part, cut = focus_graph(whole, Focus(around="a", radius=0))
    stubs = [line for line in render_dot(part, DrawOptions(cut=cut, depth=0)).splitlines() if "edges cut" in line]

    assert [stub.split()[0] for stub in stubs] == ["closed0_came", "closed0_lead"]
    assert all("2 edges cut" in stub for stub in stubs)


def test_none_edges_and_saved_tensors_on_request() -> None:
    """None edges and saved tensors are drawn only when asked for, and the caption says when they are not."""
    plain = render_dot(product_plus_two())
    dot = render_dot(product_plus_two(), EVERYTHING)

    assert "None edges are not drawn" in plain
    assert "None edges are not drawn" not in dot
    assert {"n1 -> n1_none1", "n0 -> n0_saved0", "n0 -> n0_saved1"} == set(statements(dot)) - set(statements(plain)) - {
        "n1_none1", "n0_saved0", "n0_saved1",
    }  # fmt: skip


def test_argument_names_are_an_option() -> None:
    """Edges carry argument names unless they are switched off."""
    assert '" other "' in render_dot(product_plus_two())
    assert '" other "' not in render_dot(product_plus_two(), DrawOptions(argument_names=False))


def test_input_nr_is_shown_when_not_zero() -> None:
    """An edge into another input than the first says which."""
    dot = render_dot(graph(op("AddBackward0", (1, 2), (1, 0)), op("UnbindBackward0", 2), leaf("x", 2, 3)))

    assert [line.strip() for line in dot.splitlines() if line.strip().startswith("n0 -> n1")] == [
        'n0 -> n1 [label=" input_nr 2 "]',
        'n0 -> n1 [weight="8"]',
    ]


def test_root_that_is_a_leaf() -> None:
    """A root that is a leaf itself is drawn, with its mark."""
    dot = render_dot(graph(leaf("w", 2, 3)))

    assert sorted(statements(dot), key=["root0", "n0", "root0 -> n0"].index) == ["root0", "n0", "root0 -> n0"]


def test_many_leaves_of_one_node_share_a_chip() -> None:
    """Past a few, the leaves of one node are one chip that counts them."""
    leaves = [leaf(f"w{number}", 2, 3) for number in range(30)]
    dot = render_dot(graph(op("CatBackward0", *range(1, 31)), *leaves))

    assert sum(bool(re.fullmatch(r"n0_leaf\d+", line)) for line in statements(dot)) == 7
    assert "23 more leaves" in dot


def test_a_leaf_does_not_repeat_its_module() -> None:
    """The box or the frame beside it names the module; the tooltip has the whole name."""
    dot = render_dot(
        graph(
            op("AddmmBackward0", 1, 2, module=0), leaf("h.3.fc.weight", 2, 3), leaf("wte.weight", 2),
            modules=(ModuleCall(path="h.3.fc", class_name="Linear"),),
        )
    )  # fmt: skip

    assert "<B>weight</B>" in dot
    assert "<B>wte.weight</B>" in dot
    assert "parameter h.3.fc.weight" in dot


def test_many_roots_share_a_mark() -> None:
    """Past a few, the roots of one box are one mark that counts them; those of other boxes have their own."""
    ops = [op("ExpBackward0", 40) for _ in range(40)]
    dot = render_dot(graph(*ops, leaf("x", 2, 3), roots=(0,) * 9 + tuple(range(1, 40))), DrawOptions(full=True))

    assert "9 roots" in dot
    assert sum(line.startswith("root") and "->" in line for line in statements(dot)) == 40


def test_a_large_graph_is_laid_out_in_a_hurry() -> None:
    """Graphviz may straighten the lines of a small picture as long as it likes."""
    large = graph(*(op(f"Op{place}Backward0", place + 1) for place in range(400)), leaf("w", 2, 3))

    assert "nslimit=3" in render_dot(large)
    assert "nslimit" not in render_dot(product_plus_two())


def test_same_graph_same_text() -> None:
    """The text is a function of the graph."""
    assert render_dot(product_plus_two(), EVERYTHING) == render_dot(product_plus_two(), EVERYTHING)


def hostile_graph(name: str) -> Graph:
    """Put one string everywhere the user's program can put one."""
    values = (saved(name, 2, 3, storage=0, origin="parameter"),)
    first = op(name, 1, None, module=1, frame=0, function=name, saved=values)
    return graph(
        first, op(name, 2, module=0), leaf(name, 2, 3),
        modules=(ModuleCall(path=name, class_name=name), ModuleCall(path=f"{name}.x", class_name=name, parent=0)),
        frames=(Frame(file=name, line=1, function=name, code=name),),
        storages=product_plus_two().storages,
        source=name,
        arguments={name: (name, name)},
    )  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_strings_of_the_program_are_data(name: str) -> None:
    """A hostile name is shown as it is: it ends no label, starts no element, and is no escape."""
    hostile = structs.replace(hostile_graph(name), roots=(Root(node=0, name=name),))
    svg = svg_of(render_dot(hostile, EVERYTHING))
    shown = shorten(name)
    tooltips = [element.attrib[XLINK_TITLE].replace(WORD_JOINER, "") for element in svg.iter(f"{SVG}a")]
    op_tooltip = next(text for text in tooltips if text.startswith("#0 "))

    assert list(svg.iter(f"{SVG}script")) == []
    assert texts(svg).count(shown) >= 5
    assert [f"#0 {shown}", f"custom Function {shown}"] == op_tooltip.split("\n")[:2]
    assert f"{shown}:1" in op_tooltip


@pytest.mark.slow
@given(graphs())
@settings(max_examples=examples(40), deadline=None)
def test_any_graph_draws(graph: Graph) -> None:
    """Whatever the strings are, the engine accepts the text and writes XML without scripts, and all nodes are there."""
    svg = svg_of(render_dot(graph, DrawOptions(full=True, none_edges=True, saved=True)))
    names = {title.text for title in svg.iter(f"{SVG}title")}
    ops = {f"n{node_id}" for node_id, node in enumerate(graph.nodes) if node.kind != "accumulate_grad"}

    assert list(svg.iter(f"{SVG}script")) == []
    assert ops <= names


def test_long_names_are_shortened() -> None:
    """A label is never longer than a page is wide."""
    svg = svg_of(render_dot(hostile_graph("x" * 5_000)))

    assert max(map(len, texts(svg))) < MAX_LABEL * 3


def test_a_bar_is_the_share_of_all_bytes() -> None:
    """It fills its share of a track that is as wide in every box; there is none where boxes are filled by something."""
    first, second = (saved("_saved_self", size, storage=index) for index, size in enumerate((3, 1)))
    record = graph(
        op("MulBackward0", 1, saved=(first,)), op("ExpBackward0", saved=(second,)),
        storages=(Storage(num_bytes=12), Storage(num_bytes=4)),
    )  # fmt: skip
    lines = [line for line in render_dot(record).splitlines() if "Backward0</B>" in line]
    bars = [[int(width) for width in re.findall(r'<TD FIXEDSIZE="TRUE" WIDTH="(\d+)"', line)] for line in lines]

    assert bars == [[48, 16], [16, 48]]
    assert all('<TD ALIGN="LEFT"><TABLE' in line for line in lines)
    assert "share of all bytes held" in render_dot(record)
    assert '<TD FIXEDSIZE="TRUE"' not in render_dot(record, DrawOptions(color_by="bytes"))


def test_a_skip_is_an_arc_beside_the_other_edges() -> None:
    """Between closed blocks the residual connection is an arrow of its own, and the legend says what it is."""
    drawn = render_dot(residual_blocks(5), DrawOptions(depth=1))
    (skip,) = [line for line in drawn.splitlines() if '" skip "' in line]

    assert skip.strip().startswith("closed0 -> n15")
    assert drawn.count("closed0 -> n15") == 2
    assert "residual connection" in drawn
    assert "skip" not in render_dot(residual_blocks(5), DrawOptions(full=True))


def test_what_is_closed_unasked_is_said() -> None:
    """The caption counts the closed blocks, and says what opens them only if nobody chose a depth."""
    record = residual_blocks(60)

    assert "1 block closed; leaves inside are counted" in render_dot(record, DrawOptions(depth=1))
    assert "--depth or --full open them" not in render_dot(record)  # one copy of the block is open


def test_parts_without_a_common_node_are_packed_and_many_roots_share_a_mark() -> None:
    """Several roots may be in several parts; those of one box are one mark if they are many."""
    apart = graph(op("A", None), op("B", None), op("C", None), roots=(0, 1, 2))
    together = graph(op("A", 1), op("B", 2), op("C"), roots=(0, 0, 0, 0, 1))

    assert "packmode" in render_dot(apart)
    assert "packmode" not in render_dot(product_plus_two())
    assert "4 roots" in render_dot(together)


def test_code_in_the_caption_is_as_long_as_a_wide_picture() -> None:
    """A line is cut where the picture ends, in the middle, and not much before."""
    code = " + ".join(f"term{number}" for number in range(12))
    record = structs.replace(product_plus_two(), captured_at=CapturePoint(kind="backward", number=1, frame=0),
                             frames=(Frame(file="train.py", line=8, code=code),))  # fmt: skip
    drawing, options = plan_drawing(record, DrawOptions()), DrawOptions()

    assert code not in write_dot(record, drawing, options)
    assert code in write_dot(record, drawing, options, caption_width=900)


def test_many_edges_of_a_list_have_one_name() -> None:
    """Two hundred tensors of a stack are `tensors[1-199]`, not a count."""
    record = graph(
        op("StackBackward0", *range(1, 201)), *(op("SinBackward0", 201) for _ in range(200)), op("A"),
        arguments={"StackBackward0": ("tensors*",)},
    )  # fmt: skip

    assert join_names([f"tensors[{number}]" for number in range(1, 200)]) == "tensors[1-199]"
    assert join_names(["self", "other"]) == "self, other"
    assert join_names(["a[0]", "a[2]", "b"]) == ""
    assert "tensors[" in render_dot(record)


@pytest.mark.parametrize(("count", "drawn", "rest"), [(7, 7, None), (8, 8, None), (9, 7, "2 more leaves")])
def test_as_many_leaves_as_fit_are_drawn(count: int, drawn: int, rest: str | None) -> None:
    """Eight beside one node; of more, seven and a chip for the others."""
    stacked = graph(op("StackBackward0", *range(1, count + 1)), *[leaf(f"p{place}") for place in range(count)])
    written = statements(render_dot(stacked, DrawOptions()))

    assert len([line for line in written if line.startswith("n0_leaf") and "leaves" not in line]) == drawn
    assert ("n0_leaves" in written) == (rest is not None)
    assert rest is None or rest in render_dot(stacked, DrawOptions())


def test_a_repeat_without_modules_is_named_by_its_nodes() -> None:
    """The first and the last of each copy, and how many there are."""
    record = graph(*(op(f"{name}Backward0", place) for place, name in enumerate(("Sin", "Cos", "Sin", "Cos"), 1)))
    repeat = Scope(kind="repeat", items=(0, 1), copies=((2, 3),), num_nodes=4, held_bytes=0)
    single = Scope(kind="repeat", items=(0,), copies=((2,),), num_nodes=2, held_bytes=0)
    labels = ScopeLabels(record, LIGHT)

    assert labels.name(repeat) == "Sin … Cos <B>×2</B>"
    assert labels.name(single) == "Sin <B>×2</B>"


def test_many_leaves_in_a_box_are_counted() -> None:
    """So many as would have been named, but for the one that counts."""
    few, many = (
        render_dot(
            graph(op("CatBackward0", *range(1, count + 1)), *(leaf(f"w{place}", 3) for place in range(count))),
            DrawOptions(fit_to="screen"),
        )
        for count in (MAX_CHIPS, MAX_CHIPS + 3)
    )

    few_leaves, many_leaves = (re.findall(r"</B> (?:<B>)?(w\d|\d+ more leaves)<", text) for text in (few, many))
    assert few_leaves == [f"w{place}" for place in range(MAX_CHIPS)]
    assert many_leaves == [*few_leaves[:-1], "4 more leaves"]
