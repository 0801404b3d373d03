"""The tree as people see it: whole screens, and what holds on all of them."""

import re
from itertools import islice

import msgspec
import pytest
from factories import graph, leaf, op, product_plus_two, residual_blocks, saved, two_layers
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from rich.cells import cell_len
from strategies import graphs

from gradinspect.analyses.structure.cut import cut_graph
from gradinspect.analyses.structure.focus import Focus, focus_graph
from gradinspect.analyses.structure.folding import fold_graph
from gradinspect.analyses.structure.outline import outline
from gradinspect.graph import Frame, Graph, Hook, ModuleCall, Root, SavedStatus, SavedValue, Storage
from gradinspect.renderers.terminal.trees.tree import TreeOptions, render_tree
from gradinspect.renderers.terminal.trees.tree_words import call_names


def screen(drawn: Graph, **options: object) -> str:
    """Print a tree without color."""
    lines = render_tree(drawn, TreeOptions(**options))  # type: ignore[arg-type]
    return "\n" + "\n".join(line.plain for line in lines) + "\n"


def test_product_plus_two() -> None:
    """A leaf used twice is shown at both uses, the constant as None."""
    assert screen(product_plus_two()) == snapshot("""\

root: #0 MulBackward0  f32[1]                                           8 B 100%
├─ self: ◆ a  f32[1]  used ×2
#1 AddBackward0 → ◆ a  f32[1]  used ×2  other: None
gradients flow down · ◆ leaf (AccumulateGrad) · bytes held, % of all
""")


def test_module_calls() -> None:
    """Calls are sections, a call of one node is a word on its row, transposed weights stand beside their use."""
    assert screen(two_layers()) == snapshot("""\

root: #0 NllLossBackward0  f32[]  weight: None                       train.py:8
▾ #1–5  model  Sequential  5 nodes                       480 B 100%
┊ ▾ #1–2  model.2  Linear  2 nodes                       320 B  67%
┊ ┊ #1 AddmmBackward0  f32[4, 3]                         320 B  67%  model.py:21
┊ ┊ ├─ self: ◆ model.2.bias  f32[3]
┊ ┊ └─ mat2: #2 TBackward0 → ◆ model.2.weight  f32[3, 20]
┊ #3 ReluBackward0  f32[4, 20]  model.1 ReLU                         model.py:21
┊ ▾ #4–5  model.0  Linear  2 nodes                       160 B  33%
┊ ┊ #4 AddmmBackward0  f32[4, 20]  mat1: None            160 B  33%  model.py:21
┊ ┊ ├─ self: ◆ model.0.bias  f32[20]
┊ ┊ └─ mat2: #5 TBackward0 → ◆ model.0.weight  f32[20, 10]
gradients flow down · ◆ leaf (AccumulateGrad) · bytes held, % of all
""")


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["up1", "up2", "up3"], "up1-3"),
        (["net.0", "net.2"], "net.0,2"),
        (["layers1.0", "layers1.1", "layers2.0"], "layers1.0 … layers2.0"),
        (["query", "key"], "query … key"),
    ],
)
def test_names_of_copies(paths: list[str], expected: str) -> None:
    """By their numbers if that names just these, else the first and the last."""
    calls = [ModuleCall(path=path, class_name="Up") for path in paths]

    assert call_names(graph(op("A"), modules=tuple(calls)), calls, "…") == expected


def test_calls_of_one_module_are_named_by_their_numbers() -> None:
    """In order, as copies of other modules are, whichever call comes first in backward."""
    calls = [ModuleCall(path="critic", class_name="Critic", call=number) for number in (3, 2, 1)]

    assert call_names(graph(op("A"), modules=tuple(calls)), calls, "…") == "critic calls 1-3"


def test_copies_of_several_calls_are_named_beside_their_caller() -> None:
    """Relative to it as other rows are, as many as there is room for; of one call each, without a count of calls."""
    parts = ("relu", "conv", "drop", "norm_of_a_long_name", "another_norm_of_a_long_name")
    nodes = [op("SumBackward0", 1, module=0)]
    modules = [ModuleCall(path="encoder.network.5.net", class_name="Sequential")]
    for number in (2, 1):
        for part in parts:
            for _ in "12":
                nodes.append(op(f"{part}Backward0", len(nodes) + 1, module=len(modules)))
            path = f"encoder.network.5.{part}{number}"
            modules.append(ModuleCall(path=path, class_name=part.capitalize(), parent=0))
    nodes.append(op("ExpBackward0", len(nodes) + 1, module=0))
    drawn = graph(*nodes, leaf("w", 3), modules=tuple(modules))

    rows = [" ".join(row.split()) for row in screen(drawn, depth=1).splitlines()]

    assert [row for row in rows if "×2" in row] == snapshot(
        ["┊ ▸ ×2 #1–20 relu1-2, conv1-2, drop1-2, 2 more 10 nodes each"]
    )


def test_elements_of_a_list_are_written_as_one_argument() -> None:
    """Two hundred steps that are stacked are `tensors[0-199]`, not two names and a count."""
    steps = range(1, 201)
    drawn = graph(
        op("StackBackward0", *steps),
        *(op("SinBackward0", 201) for _ in steps),
        leaf("x", 3),
        arguments={"StackBackward0": ("tensors*",)},
    )

    assert "tensors[0-199]: " in screen(drawn)


def test_bytes_of_copies_that_are_too_wide_are_rounded() -> None:
    """A range is never cut."""
    sizes = (136_397, 163_533, 150_000, 140_000, 141_000)
    names = ("ReluBackward0", *("CosBackward0", "SinBackward0") * 5)
    nodes = [
        op(name, len(names) * place + at + 1, module=place if at else None, saved=(saved("x", 3, storage=place),))
        for place in range(len(sizes))
        for at, name in enumerate(names)
    ]
    storages = tuple(Storage(num_bytes=size, origin="activation") for size in sizes)
    modules = tuple(ModuleCall(path=f"up{place}", class_name="Up") for place in range(len(sizes)))
    lines = screen(graph(*nodes, leaf("x", 3), modules=modules, storages=storages), depth=9).splitlines()

    assert [line for line in lines if "#0 Relu" in line and "  133..160 KiB" in line]


def test_closed_module_calls() -> None:
    """A call deeper than asked for is one row that says what is in it."""
    assert screen(two_layers(), depth=1, width=100) == snapshot("""\

root: #0 NllLossBackward0  f32[]  weight: None                                           train.py:8
▾ #1–5  model  Sequential  5 nodes                                           480 B 100%
┊ ▸ #1–2  model.2  Linear  f32[4, 3]  2 nodes, 2 leaves                      320 B  67%
┊ #3 ReluBackward0  f32[4, 20]  model.1 ReLU                                             model.py:21
┊ ▸ #4–5  model.0  Linear  f32[4, 20]  2 nodes, 2 leaves                     160 B  33%
▸ 2 blocks closed; --depth or --full open them
gradients flow down · bytes held, % of all
""")


def focused(whole: Graph, focus: Focus, **options: object) -> str:
    """Print the tree of what is in focus."""
    part, cut = focus_graph(whole, focus)
    return screen(part, cut=cut, **options)


def test_a_focus() -> None:
    """The head says how much of what is left; nodes keep their numbers, and cut edges are counted."""
    assert focused(two_layers(), Focus(around="1", radius=1)) == snapshot("""\

3 of 6 nodes, with 2 of 4 leaves: within 1 of 1
▾ #1–4  model  Sequential  3 nodes                       480 B 100%
┊ #1 AddmmBackward0  f32[4, 3]  model.2 Linear           320 B  67%  model.py:21
┊ │    mat2: cut  ← 1 cut
┊ ├─ self: ◆ model.2.bias  f32[3]
┊ #3 ReluBackward0  f32[4, 20]  model.1 ReLU                         model.py:21
┊ #4 AddmmBackward0  f32[4, 20]  model.0 Linear          160 B  33%  model.py:21
┊ │    mat1: None  mat2: cut
┊ └─ ◆ model.0.bias  f32[20]
gradients flow down · ◆ leaf (AccumulateGrad) · cut: to hidden nodes
""")
    assert focused(two_layers(), Focus(path_to="0.weight"), depth=1, unicode=False) == snapshot("""\

5 of 6 nodes, with 1 of 4 leaves: on a path to 0.weight
root: #0 NllLossBackward0  f32[]  weight: None                       train.py:8
v #1-5  model  Sequential  4 nodes                       480 B 100%
: #1 AddmmBackward0  f32[4, 3]  model.2 Linear           320 B  67%  model.py:21
:      self, mat2: cut
: #3 ReluBackward0  f32[4, 20]  model.1 ReLU                         model.py:21
: > #4-5  model.0  Linear  2 nodes  -> 1 cut             160 B  33%
> 1 block closed; --depth or --full open them
gradients flow down | cut: to hidden nodes | bytes held, % of all
""")


@pytest.mark.slow
@given(graphs(), st.integers(20, 120), st.booleans())
def test_a_focus_fits(whole: Graph, width: int, unicode: bool) -> None:
    """No line is wider than the screen, whatever is cut away."""
    kept = range(0, len(whole.nodes), 2)
    part, cut = cut_graph(whole, kept, "ten\x1b[2Jnodes")
    lines = list(render_tree(part, TreeOptions(width=width, unicode=unicode, cut=cut)))

    assert all(line.cell_len <= width and "\x1b" not in line.plain for line in lines)
    assert len(lines) > 1


def test_repeated_blocks() -> None:
    """Equal blocks are told once; the way past a branch is said, and where a block goes on."""
    assert screen(residual_blocks(12)) == snapshot("""\

▾ #0–36  model  Net  37 nodes
┊ ▾ ×12 #0–35  h.0-11  Block  3 nodes each
┊ ┊ root: #0 AddBackward0  f32[2, 3]
┊ ┊ ├─ other: #1 ExpBackward0  f32[2, 3]
┊ ┊ │  #2 MulBackward0  f32[2, 3]
┊ ┊ │  ├─ self: → #3 AddBackward0
┊ ┊ │  └─ other: ◆ shared  f32[3]  used ×13
┊ ┊ self: → #3 AddBackward0
┊ #36 EmbeddingBackward0 → ◆ shared  f32[3]  used ×13
gradients flow down · ◆ leaf (AccumulateGrad) · → #n shown elsewhere
""")


def test_full() -> None:
    """Nothing is folded when the whole is asked for."""
    text = screen(residual_blocks(12), full=True, max_rows=None)

    assert "×12" not in text
    assert all(f"#{node} " in text for node in range(37))


def test_several_roots_and_input_nr() -> None:
    """Each root is named; an edge into another input than the first says so; what is told elsewhere is referred to."""
    chunks = graph(
        op("SumBackward0", (2, 1)), op("MulBackward0", (2, 2), (2, 2)), op("SplitBackward0", 3), leaf("x", 6),
        roots=(0, 1), arguments={"MulBackward0": ("self", "other")},
    )  # fmt: skip
    roots = (Root(node=0, name="loss"), Root(node=1, name="aux", output_nr=1))

    assert screen(msgspec.structs.replace(chunks, roots=roots)) == snapshot("""\

root loss: #0 SumBackward0  f32[2, 3] → #2 SplitBackward0 (input_nr 1)
root aux (output 1): #1 MulBackward0  f32[2, 3]
├─ self: → #2 SplitBackward0 (input_nr 2)
└─ other: → #2 SplitBackward0 (input_nr 2)
#2 SplitBackward0 → ◆ x  f32[6]
gradients flow down · ◆ leaf (AccumulateGrad) · → #n shown elsewhere
""")


def test_many_roots_of_a_fold_are_counted() -> None:
    """Eight equal rows of one output: the fold says how many start there, also closed, instead of naming each."""
    ops = (one for row in range(0, 16, 2) for one in (op("SumBackward0", row + 1, shape=()), op("SelectBackward0", 16)))
    rows = graph(*ops, op("AddBackward0", 17), leaf("x"), roots=tuple(range(0, 16, 2)))

    assert "\n7 more roots: ▾ ×8 #0–15  2 nodes each\n" in screen(rows, depth=1)
    assert "\n8 roots: ▸ ×8 #0–15  2 nodes each\n" in screen(rows, depth=0)


def test_marks() -> None:
    """Stale saved values, hooks and custom Functions are marked on the row."""
    statuses: tuple[SavedStatus, ...] = ("freed", "modified", "modified")
    values = tuple(
        SavedValue(name="saved_tensors", kind="tensor", index=index, status=status)
        for index, status in enumerate(statuses)
    )
    marked = op("ScaleBackward", 1, kind="custom", function="ops.Scale", saved=values, hooks=(Hook(kind="pre"),))

    assert screen(graph(marked, leaf(None, 2)), width=60) == snapshot("""\

root: #0 ScaleBackward  f32[2, 3]
│    ops.Scale  1 freed  2 modified  1 hook
└─ ◆ #1  f32[2]
gradients flow down · ◆ leaf (AccumulateGrad)
""")


def test_ascii() -> None:
    """Where only ASCII can be shown, everything is ASCII."""
    text = screen(residual_blocks(12), unicode=False)

    assert text.isascii()
    assert text == snapshot("""\

v #0-36  model  Net  37 nodes
: v x12 #0-35  h.0-11  Block  3 nodes each
: : root: #0 AddBackward0  f32[2, 3]
: : |- other: #1 ExpBackward0  f32[2, 3]
: : |  #2 MulBackward0  f32[2, 3]
: : |  |- self: -> #3 AddBackward0
: : |  `- other: * shared  f32[3]  used x13
: : self: -> #3 AddBackward0
: #36 EmbeddingBackward0 -> * shared  f32[3]  used x13
gradients flow down | * leaf (AccumulateGrad) | -> #n shown elsewhere
""")


def test_what_is_not_shown_is_counted() -> None:
    """Past the budget the nodes that are left are counted, with what to do."""
    nodes = [op(f"Op{place}Backward0", place + 1 if place < 999 else None) for place in range(1000)]

    assert screen(graph(*nodes), max_rows=3) == snapshot("""\

root: #0 Op0Backward0  f32[2, 3]
#1 Op1Backward0  f32[2, 3]
#2 Op2Backward0  f32[2, 3]
… 997 more nodes not shown: use --depth, --around, --full or -o FILE
gradients flow down
""")


def test_a_skip_stands_beside_a_closed_block() -> None:
    """The residual connection of a block is named by the argument of its sum and where it leads."""
    shown = screen(residual_blocks(5), depth=1, width=120)

    assert "self: → #15 skip" in shown
    assert "1 block closed; --depth or --full open them" in shown
    assert "skip" not in screen(residual_blocks(5), depth=2, width=120)


@pytest.mark.slow
@pytest.mark.parametrize("width", [20, 40, 80, 200])
@given(drawn=graphs(), full=st.booleans(), unicode=st.booleans())
def test_no_line_is_too_wide_or_unsafe(width: int, drawn: Graph, full: bool, unicode: bool) -> None:
    """Whatever the names in a graph are, no line is wider than the terminal or can steer it."""
    for line in render_tree(drawn, TreeOptions(width=width, full=full, unicode=unicode)):
        assert cell_len(line.plain) <= width
        assert line.plain.isprintable()
        assert unicode or line.plain.isascii()


@pytest.mark.slow
@given(graphs(), st.integers(0, 6))
def test_shown_and_missing_nodes_add_up(drawn: Graph, max_rows: int) -> None:
    """What has no row is counted, to the node."""
    rows = islice(outline(drawn, fold_graph(drawn, repeats=False), lambda *_: True), max_rows)
    num_nodes = sum(node.kind != "accumulate_grad" for node in drawn.nodes)
    missing = num_nodes - sum(len(row.nodes) for row in rows)
    text = screen(drawn, full=True, max_rows=max_rows, width=500)

    assert (f"\n… {missing} more node" in text) == bool(missing)


def test_only_the_guides_are_dim() -> None:
    """The style of a line is that of its parts, not one for all of them."""
    line = next(line for line in render_tree(two_layers()) if "AddmmBackward0" in line.plain)
    place = line.plain.index("AddmmBackward0")
    styles = [str(span.style) for span in line.spans if span.start <= place < span.end]

    assert (str(line.style), styles) == ("", ["bold"])


@pytest.mark.parametrize(("width", "shown"), [(200, 24), (80, 16)])
def test_a_long_file_name_gives_way_and_the_line_number_stays(width: int, shown: int) -> None:
    """Every row that has a source line shows it, with its whole number."""
    file = "models/modeling_transformer_xl_utilities.py"
    made = [node for node in two_layers().nodes if node.leaf is None]
    drawn = msgspec.structs.replace(
        two_layers(),
        nodes=tuple(
            msgspec.structs.replace(node, frame=number if number < len(made) else None)
            for number, node in enumerate(two_layers().nodes)
        ),
        frames=tuple(Frame(file=file, line=1234 + number) for number in range(len(made))),
    )
    rows = [line for line in screen(drawn, width=width, full=True).splitlines() if "Backward" in line]

    assert [row[-5:] for row in rows] == [f":{1234 + number}" for number in range(len(made))]
    assert {cell_len(row.split()[-1]) for row in rows} == {shown}


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (100, "#1 NativeLayerNormBackward0 → ◆ x f32[8, 128, 128] norm_between 512.0 KiB 100% train.py:1234"),
        (80, "#1 NativeLayerNormBackward0 f32[8, 128, 128] norm_between 512.0 KiB 100%"),
        (66, "#1 NativeLayerNormBackward0 norm_between 512.0 KiB"),
    ],
)
def test_columns_are_dropped_before_names_are_cut(width: int, expected: str) -> None:
    """First the location, then the share, then the shape; the bytes stay."""
    shape = (8, 128, 128)
    drawn = graph(
        op("AddBackward0", 1, shape=shape, frame=0),
        op(
            "NativeLayerNormBackward0", 2, shape=shape, module=0, frame=0, saved=(saved("_saved_x", *shape, storage=0),)
        ),
        leaf("x", *shape),
        modules=(ModuleCall(path="norm_between", class_name="LayerNorm"),),
        frames=(Frame(file="train.py", line=1234),),
        storages=(Storage(num_bytes=4 * 8 * 128 * 128),),
    )

    rows = screen(drawn, width=width, full=True).splitlines()

    assert expected in [" ".join(row.split()) for row in rows]


@pytest.mark.parametrize(("width", "are_whole"), [(64, True), (52, True), (34, False)])
def test_a_shape_is_left_out_before_a_class_is_spelled_otherwise(width: int, are_whole: bool) -> None:
    """A class has one spelling in all rows, however deep; it goes without Backward0 only where it alone is too wide."""
    paths = ["encoder", "encoder.stage", "encoder.stage.pooled", "encoder.stage.pooled.pool"]
    modules = tuple(ModuleCall(path=path, class_name="Pool", parent=place - 1 if place else None)
                    for place, path in enumerate(paths))  # fmt: skip
    name = "MaxPool2DWithIndicesBackward0"
    nodes = [op(name, place + 1, module=place % 4, shape=(64, 512, 16, 16)) for place in range(8)]
    drawn = screen(graph(*nodes, leaf("x", 3), modules=modules), width=width, full=True)
    found = set(re.findall(r"Max\S+", drawn))

    assert found == {name} if are_whole else name.removesuffix("Backward0") in found
    assert drawn.count("f32[64, 512, 16, 16]") < 8


@pytest.mark.parametrize(
    ("is_shared", "words"),
    [(True, "copy 1: counts 4.0 KiB that others save too"), (False, "copy 1: 5.0 times the others' bytes")],
)
def test_the_odd_one_out_among_copies(*, is_shared: bool, words: str) -> None:
    """Its bytes, unless they are those of what all copies save, which count in the first."""
    own = [
        op(
            "MulBackward0",
            place + 1,
            saved=(
                saved("_saved_self", 256, storage=place),
                saved("_saved_other", 1024, storage=6 if is_shared or not place else place),
            ),
        )
        for place in range(6)
    ]
    storages = (*(Storage(num_bytes=1024) for _ in own), Storage(num_bytes=4096))

    assert words in screen(graph(*own, leaf("x", 3), storages=storages), max_rows=9, depth=0)


@pytest.mark.parametrize("width", [100, 200])
def test_the_line_that_called_a_library_stands_beside_the_librarys(width: int) -> None:
    """It is told once, and again where another line of the program begins."""
    frames = (
        Frame(file="train.py", line=7),
        Frame(file="big/modeling_big.py", line=300, caller=0, is_library=True),
        Frame(file="big/modeling_big.py", line=310, caller=1, is_library=True),
        Frame(file="train.py", line=9),
        Frame(file="big/losses.py", line=5, caller=3, is_library=True),
    )
    lines = iter((4, 2, 2, 1, 1, 0, 0))
    nodes = tuple(
        msgspec.structs.replace(node, frame=next(lines) if node.leaf is None else None) for node in two_layers().nodes
    )
    text = screen(msgspec.structs.replace(two_layers(), nodes=nodes, frames=frames), width=width, full=True)

    assert text.index("losses.py:5") < text.index("modeling_big.py:310") < text.index("modeling_big.py:300")
    assert text.count("called at train.py:9") == text.count("called at train.py:7") == 1


@pytest.mark.parametrize("width", [36, 46, 80])
def test_names_that_begin_alike_stay_apart(width: int) -> None:
    """On a narrow screen the end of a name is kept, and an index keeps its parent."""
    names = ("transformer.wte.weight", "transformer.wpe.weight", "transformer.h.2.weight")
    record = graph(op("AddBackward0", 1, 2, 3), *(leaf(name, 4) for name in names))
    shown = [re.search(r"◆ (\S+)  f32", line) for line in screen(record, width=width).splitlines()]
    ends = [found[1].lstrip("…") for found in shown if found is not None]

    assert all(name.endswith(end) for name, end in zip(names, ends, strict=True))
    assert [end.split(".")[-2:] for end in ends] == [name.split(".")[-2:] for name in names]
    assert not ends[-1][0].isdigit()


def test_a_file_name_is_not_cut_to_save_a_letter() -> None:
    """A column that is two cells wider costs less than the start of a name."""
    drawn = graph(op("AddBackward0", 1, frame=0), leaf("x", 3), frames=(Frame(file="nano_models.py", line=187),))

    assert "  nano_models.py:187" in screen(drawn, width=64, full=True)


def test_a_location_is_dropped_before_a_name_loses_its_start() -> None:
    """Also one that no row above has; where the whole name fits without it."""
    drawn = graph(
        op("AddBackward0", 1, shape=(4, 32, 48), frame=0),
        op("MulBackward0", 2, shape=(4, 32, 48), module=0, frame=1, saved=(saved("_saved_other", 4, 32, storage=0),)),
        leaf("x", 48),
        modules=(ModuleCall(path="transformer.dropout", class_name="Dropout"),),
        frames=(Frame(file="model.py", line=269), Frame(file="model.py", line=270)),
        storages=(Storage(num_bytes=4 * 32 * 4),),
    )

    rows = [" ".join(row.split()) for row in screen(drawn, full=True, width=70).splitlines()]

    assert [row for row in rows if row.startswith("#1")] == snapshot(
        ["#1 MulBackward0 f32[4, 32, 48] transformer.dropout Dropout 512 B"]
    )


def test_different_files_are_never_written_alike() -> None:
    """Those of one name have their folders; a long name keeps its end."""
    files = ("models/model.py", "other/model.py", "a_script_of_a_long_name.py", "a_script_of_another_name.py")
    drawn = graph(
        *(op("AddBackward0", place + 1, frame=place) for place in range(len(files))),
        leaf("x", 3),
        frames=tuple(Frame(file=file, line=7) for file in files),
    )

    assert [row.split()[-1] for row in screen(drawn, width=70, full=True).splitlines()[1:5]] == snapshot(
        ["models/model.py:7", "other/model.py:7", "…t_of_a_long_name.py:7", "…_of_another_name.py:7"]
    )


def test_an_end_of_a_name_is_said_of_one_leaf_alone() -> None:
    """Where it does not fit; with as many parts as tell it from all others."""
    names = ("a_very_long_name_of_a_model.encoder.norm.weight", "a_very_long_name_of_a_model.decoder.norm.weight",
             "a_very_long_name_of_a_model.decoder.norm.bias")  # fmt: skip
    drawn = graph(op("StackBackward0", 1, 2, 3), *(leaf(name, 3) for name in names))
    rows = screen(drawn, width=48, full=True).splitlines()

    assert [row.partition("◆ ")[2] for row in rows if "◆ …" in row] == snapshot(
        ["…encoder.norm.weight  f32[3]", "…decoder.norm.weight  f32[3]", "…norm.bias  f32[3]"]
    )
