"""The memory screens: what they print, and that they never need more room than they are given."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from model_names import PARAMETERS
from msgspec.structs import replace
from rich.cells import cell_len
from rich.text import Text
from strategies import graphs

from gradinspect.analyses.memory.growth import Growth, Holder, Iteration
from gradinspect.analyses.memory.held import measure_memory
from gradinspect.analyses.memory.notes import MemoryNote, memory_notes
from gradinspect.analyses.memory.rows import OUTSIDE, LineBytes, MemoryRow, left_out, rows_by_operator, rows_by_storage
from gradinspect.analyses.memory.tree import ModuleBytes, module_tree
from gradinspect.analyses.structure.name_folding import OddOne
from gradinspect.errors import GradInspectError
from gradinspect.graph import Graph
from gradinspect.renderers.data.memory import GROUPS, GROWTH, ITERATIONS, MODULES, render_memory_json, with_depths
from gradinspect.renderers.data.table import figures, render_table
from gradinspect.renderers.terminal.memory.growth import render_growth
from gradinspect.renderers.terminal.memory.held import MemoryPage, fitting_depth
from gradinspect.renderers.terminal.memory.source_lines import render_annotated_source

MIB = 2**20


def tree() -> tuple[ModuleBytes, ...]:
    """Twelve blocks and a head."""
    mlp = ModuleBytes(
        label="mlp", path="h.0.mlp", class_name="MLP", copies=12, own_bytes=24 * MIB, total_bytes=24 * MIB
    )
    block = ModuleBytes(label="h.0-11", path="h.0", class_name="Block", copies=12, own_bytes=6 * MIB,
                        total_bytes=30 * MIB, only_bytes=30 * MIB, children=(mlp,))  # fmt: skip
    head = ModuleBytes(label="head", path="head", class_name="Linear", own_bytes=2 * MIB, total_bytes=2 * MIB)
    return (ModuleBytes(label="model", path="", class_name="GPT", total_bytes=32 * MIB, children=(block, head)),)


def lines_of(texts: "list[Text]") -> list[str]:
    """Take the text, and check that nothing stands at the end of a line."""
    plain = [text.plain for text in texts]
    assert plain == [line.rstrip() for line in plain]
    return plain


def test_the_tree_of_modules() -> None:
    """Totals, own bytes and a bar; as deep as asked for."""
    assert lines_of(list(MemoryPage(width=72).modules(tree(), 32 * MIB))) == snapshot(
        [
            "module                         total         own     %",
            "model  GPT                  32.0 MiB              100%  ████████████████",
            "├─ h.0-11  Block  ×12       30.0 MiB     6.0 MiB   94%  ███████████████",
            "│  └─ mlp  MLP  ×12         24.0 MiB    24.0 MiB   75%  ████████████",
            "└─ head  Linear              2.0 MiB     2.0 MiB    6%  █",
            "total                       32.0 MiB",
        ]
    )
    assert [line.split()[0] for line in lines_of(list(MemoryPage(width=60).modules(tree(), 1, depth=0)))] == [
        "module", "model", "total",
    ]  # fmt: skip
    assert lines_of(list(MemoryPage(width=72, unicode=False).modules(tree(), 32 * MIB)))[3] == snapshot(
        "|  `- mlp  MLP  x12         24.0 MiB    24.0 MiB   75%  ############"
    )


def test_a_row_of_different_modules_shows_the_least_and_the_most() -> None:
    """Where that leaves room for bars."""
    up = ModuleBytes(
        label="up1-4", path="up1", class_name="Up", copies=4, own_bytes=80, total_bytes=80, between=(5, 40)
    )

    for width, start in ((80, "up1-4  Up  ×4  5..40 B "), (50, "up1-4  Up  ×4     ")):
        assert lines_of(list(MemoryPage(width=width).modules([up], 80)))[1].startswith(start)


def test_the_odd_one_of_equal_modules_is_named_below_its_row() -> None:
    """With the guides of the tree, and as other screens name it."""
    odd = OddOne("0", 4.5)
    part = ModuleBytes(label="act", path="0.act", class_name="GELU", copies=3, total_bytes=40)
    row = ModuleBytes(
        label="0-2", path="0", class_name="Up", copies=3, total_bytes=80, between=(5, 40), odd_one=odd, children=(part,)
    )
    top = ModuleBytes(label="net", path="", class_name="Net", total_bytes=80, children=(row, row))

    lines = lines_of(list(MemoryPage(width=60).modules([top], 80, None, "net")))

    assert [line.partition("×")[0] for line in lines[2:8]] == [
        "├─ 0-2  Up  ",
        "│  │  net.0: 4.5 times the others",
        "│  └─ act  GELU  ",
        "└─ 0-2  Up  ",
        "   │  net.0: 4.5 times the others",
        "   └─ act  GELU  ",
    ]
    assert lines_of(list(MemoryPage(width=60).modules([top], 80, 1, "net")))[3] == "│     net.0: 4.5 times the others"


@pytest.mark.parametrize(("max_rows", "depth"), [(1, 0), (3, 1), (4, 2), (100, 2)])
def test_the_depth_that_fits(max_rows: int, depth: int) -> None:
    """As deep as the rows allow, and no deeper than there is something."""
    assert fitting_depth(tree(), max_rows) == depth


def test_the_source_with_its_bytes() -> None:
    """Neighbours beside the lines that keep something; the recorded line where the source has changed."""
    source = [f"line {number}" for number in range(1, 21)]
    lines = (
        LineBytes(file="net.py", line=3, code="line 3", num_bytes=3 * MIB, shared_bytes=0),
        LineBytes(file="net.py", line=12, code="line 12", num_bytes=0, shared_bytes=MIB),
    )
    expected = snapshot(
        [
            "   3.0 MiB  100%  net.py",
            "                   1   line 1",
            "                   2   line 2",
            "   3.0 MiB  100%   3 █ line 3",
            "                   4   line 4",
            "                   5   line 5",
            "                   ⋮",
            "                  10   line 10",
            "                  11   line 11",
            "    shared        12   line 12",
            "                  13   line 13",
            "                  14   line 14",
        ]
    )

    assert lines_of(list(render_annotated_source(lines, {"net.py": source}.get, width=60))) == expected
    for changed in ({}, {"net.py": source[1:]}, {"net.py": source[:5]}):
        assert lines_of(list(render_annotated_source(lines, changed.get, width=60))) == snapshot(
            [
                "   3.0 MiB  100%  net.py",
                "   3.0 MiB  100%   3 █ line 3",
                "                   ⋮",
                "    shared        12   line 12",
            ]
        )


def test_a_table_adds_up_what_it_leaves_out() -> None:
    """The last row but one; shared bytes have a column where there are any."""
    rows = (
        MemoryRow(label="AddmmBackward0", num_bytes=3 * MIB, shared_bytes=MIB, num_storages=2, nodes=(1, 2)),
        MemoryRow(label="ReluBackward0", num_bytes=MIB, num_storages=1, nodes=(3,)),
        MemoryRow(label="MulBackward0", num_bytes=MIB, num_storages=1, nodes=(4,)),
    )
    shown, rest = left_out(rows, 1)

    assert lines_of(list(MemoryPage(width=60).table("operator", shown, rest, 5 * MIB))) == snapshot(
        [
            "operator                       bytes  also keeps     %",
            "AddmmBackward0               3.0 MiB     1.0 MiB   60%",
            "2 more                       2.0 MiB               40%",
            "total                        5.0 MiB",
        ]
    )
    assert render_table(GROUPS, rows, "csv").splitlines()[1] == f"AddmmBackward0,,{3 * MIB},{MIB},0,2,1 2"


def test_many_notes_of_one_kind_are_cut() -> None:
    """And counted."""
    notes = [MemoryNote(kind="slice", num_bytes=1, text=f"s{index} " + "word " * 20) for index in range(6)]
    lines = lines_of(list(MemoryPage(width=60).notes(notes)))

    assert lines[0].startswith("slice: s0 word")
    assert lines[1].startswith("  word")
    assert lines[-1] == "slice: 2 more, with --format json"


@pytest.mark.slow
@given(graphs(), st.integers(30, 160), st.booleans())
def test_no_line_is_wider_than_asked(record: Graph, width: int, unicode: bool) -> None:
    """For any graph, at any width; and nothing in it can move the cursor."""
    try:
        memory = measure_memory(record)
    except GradInspectError:
        return
    page = MemoryPage(width=width, unicode=unicode)
    modules = module_tree(record, memory)
    texts = [
        *page.modules(modules, memory.extra_bytes),
        *page.own_code(modules, memory.extra_bytes),
        *page.table("operator", rows_by_operator(record, memory), None, memory.extra_bytes),
        *page.table("storage", rows_by_storage(record, memory), None, memory.extra_bytes),
    ]

    assert all(cell_len(text.plain) <= width and text.plain.isprintable() for text in texts)
    assert all(text.plain.isascii() for text in texts if not unicode)
    notes = memory_notes(record, memory)
    assert json.loads(render_memory_json(memory, "", "module", modules, notes))["extra_bytes"] == memory.extra_bytes
    assert render_table(MODULES, with_depths(modules), "csv").isprintable() is False  # it has line ends


def module(label: str, class_name: str, own: int, *children: ModuleBytes) -> ModuleBytes:
    """Measure a module."""
    total = own + sum(child.total_bytes for child in children)
    return ModuleBytes(
        label=label, path=label, class_name=class_name, own_bytes=own, total_bytes=total, children=children
    )


@pytest.mark.parametrize(
    ("own", "outside", "said"),
    [
        (600, 100, ["own: 600 B in the code of net Net itself; which lines: --by line"]),
        (100, 600, ["own: 600 B outside of modules; which lines: --by line"]),
        (500, 100, []),  # half is not more than half
        (0, 0, []),
    ],
)
def test_where_most_is_kept_in_no_submodule_its_lines_are_pointed_at(own: int, outside: int, said: list[str]) -> None:
    """A layer without submodules is named by its row."""
    layer = module("fc", "Linear", 1000 - own - outside)
    tree = [module("net", "Net", own, layer), module(OUTSIDE, "", outside)]

    assert [line.plain for line in MemoryPage(width=80).own_code(tree, 1000)] == said


def growth() -> Growth:
    """Three calls that leave two nodes each behind."""
    return Growth(
        source="train.py",
        asked=3,
        iterations=tuple(
            Iteration(number=n + 1, place="train.py:20", live_nodes=10 + 2 * n, live_bytes=MIB, old_nodes=2 * n,
                      old_bytes=512 * n)
            for n in range(3)
        ),
        holders=(
            Holder(held_by="variable", name="losses[*]", num_tensors=2, num_nodes=4, num_bytes=1024,
                   stored_at=("train.py:18  losses.append(loss)",), made_at="train.py:17  loss = f(x)"),
        ),
    )  # fmt: skip


def test_growth_is_told_with_its_holder() -> None:
    """The conclusion, the calls, who holds it and what to do."""
    assert lines_of(list(render_growth(growth(), width=72))) == [
        "3 backward calls of train.py",
        "The graph grows by 2 nodes and 512 B per iteration.",
        "",
        "backward                  live nodes    retained  live bytes    retained",
        "#1  train.py:20                   10                 1.0 MiB",
        "#2  train.py:20                   12           2     1.0 MiB       512 B",
        "#3  train.py:20                   14           4     1.0 MiB     1.0 KiB",
        "",
        "losses[*]  2 tensors, 4 nodes, 1.0 KiB",
        "  stored at train.py:18  losses.append(loss)",
        "  made at train.py:17  loss = f(x)",
        "  detach() the tensor that is kept, or keep its number with item()",
    ]
    assert figures(growth(), GROWTH)["grows"] is True
    assert render_table(ITERATIONS, growth().iterations, "csv").splitlines()[2] == f"2,train.py:20,12,{MIB},2,512"


def test_nodes_that_save_nothing_are_no_growth_of_bytes() -> None:
    """After backward a graph that is kept holds its nodes alone."""
    calls = tuple(replace(call, old_bytes=0) for call in growth().iterations)
    lines = lines_of(list(render_growth(replace(growth(), iterations=calls), width=72)))

    assert lines[1] == "The graph grows by 2 nodes per iteration, without saved bytes."


@pytest.mark.parametrize("model", PARAMETERS)
def test_storages_with_different_names_are_different_rows(model: str) -> None:
    """At every width of a terminal, also where shapes and lines leave little room for names."""
    rows = [
        MemoryRow(label=f"input {name}", detail="f32[3072, 768]  modeling_model.py:431", num_bytes=MIB)
        for name in PARAMETERS[model]
    ]
    for width in range(60, 121, 20):
        lines = lines_of(list(MemoryPage(width=width).table("storage", rows, None, len(rows) * MIB)))

        assert len(lines) == len(set(lines)) == len(rows) + 2
        assert max(map(len, lines)) <= width


def test_growth_says_which_calls_end_an_iteration() -> None:
    """Of either kind."""
    first, *_ = render_growth(replace(growth(), kind="grad"))

    assert first.plain == "3 autograd.grad calls of train.py"


@pytest.mark.parametrize(("width", "line"), [(56, "src/model.py:21"), (52, "src/mo…py:21"), (48, None)])
def test_a_line_that_has_no_room_is_left_out(width: int, line: str | None) -> None:
    """It is narrowed first; where not even that is enough nothing of it stands there, and the shape is whole."""
    row = MemoryRow(label="AddmmBackward0", detail="f32[64, 1024]  src/model.py:21", num_bytes=MIB)
    _, shown, _ = (text.plain for text in MemoryPage(width=width).table("operator", [row], None, MIB))

    assert "f32[64, 1024]" in shown
    assert "…" not in shown if line is None else line in shown
