"""The saved-attribute table on a terminal and as JSON."""

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from factories import product_plus_two
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot
from rich.cells import cell_len
from strategies import examples, graphs

from gradinspect.analyses.memory.saved_rows import SavedRow, saved_rows
from gradinspect.graph import Graph
from gradinspect.renderers.data.summary import SAVED
from gradinspect.renderers.data.table import render_table
from gradinspect.renderers.terminal.saved_table import render_folded_table, render_saved_table, status_text


def rows() -> tuple[SavedRow, ...]:
    """Rows with long names, sharing, and a tensor modified in place."""
    weight = SavedRow(
        node=7, node_name="ConvolutionBackward0", attribute="_saved_weight", kind="tensor", value="f32[64, 64, 3, 3]",
        num_bytes=147_456, own_bytes=147_456, status="live", origin="parameter", origin_name="layer1.0.conv1.weight",
        shown_origin="layer1.0.conv1.weight",
        module="layer1.0.conv1", module_name="layer1.0.conv1", source="torchvision/models/resnet.py:93",
    )  # fmt: skip
    shared = msgspec.structs.replace(weight, node=120, own_bytes=0, shared_with=7)
    modified = msgspec.structs.replace(
        shared, attribute="_saved_input", origin="activation", origin_name=None, shown_origin=None, status="modified",
        status_detail="at version 3, expected 2",
    )  # fmt: skip
    stride = SavedRow(
        node=120, node_name="ConvolutionBackward0", attribute="_saved_stride", kind="tuple", value="(1, 1)"
    )
    return weight, shared, modified, stride


def lines_of(found: Sequence[SavedRow], width: int = 80, **options: Any) -> list[str]:
    """Return the lines of the table."""
    return [line.plain for line in render_saved_table(found, width=width, **options)]


def test_a_small_table() -> None:
    """Columns as wide as they need be, then the bytes, each storage once."""
    assert lines_of(saved_rows(product_plus_two())) == snapshot(
        [
            "#  node          attribute     value   bytes    %  status  origin",
            "0  MulBackward0  _saved_other  f32[1]    4 B  50%  live    activation",
            "0  MulBackward0  _saved_self   f32[1]    4 B  50%  live    input",
            "1  AddBackward0  _saved_alpha  1",
            "3 rows, 8 B held: each storage counted once",
        ]
    )


SCREENS = {
    60: """\
  #  node         attribute  value               bytes     %
  7  Convolution  weight     f32[64,64,3,3]  144.0 KiB  100%
120  Convolution  weight     f32[64,64,3,3]  144.0 KiB
120  Convolution  input      f32[64,64,3,3]  144.0 KiB
120  Convolution  stride     (1, 1)
4 rows, 144.0 KiB held: each storage counted once
not shown at this width: status, origin, module, source
""",
    80: """\
  #  node         attribute      value                  bytes     %  status
  7  Convolution  _saved_weight  f32[64, 64, 3, 3]  144.0 KiB  100%  live
120  Convolution  _saved_weight  f32[64, 64, 3, 3]  144.0 KiB        as #7
120  Convolution  _saved_input   f32[64, 64, 3, 3]  144.0 KiB        modified
120  Convolution  _saved_stride  (1, 1)
4 rows, 144.0 KiB held: each storage counted once; as #n: shared with #n
not shown at this width: origin, module, source
""",
    120: """\
  #  node         attribute      value                  bytes     %  status    origin                 source
  7  Convolution  _saved_weight  f32[64, 64, 3, 3]  144.0 KiB  100%  live      layer1.0.conv1.weight  resnet.py:93
120  Convolution  _saved_weight  f32[64, 64, 3, 3]  144.0 KiB        as #7     layer1.0.conv1.weight  resnet.py:93
120  Convolution  _saved_input   f32[64, 64, 3, 3]  144.0 KiB        modified  activation             resnet.py:93
120  Convolution  _saved_stride  (1, 1)
4 rows, 144.0 KiB held: each storage counted once; as #n: shared with #n
not shown at this width: module
""",
}  # fmt: skip


@pytest.mark.parametrize("width", SCREENS)
def test_what_a_width_shows(width: int) -> None:
    """Fewer words first, then fewer columns, which the last line names; no shape and no name is ever cut."""
    assert "".join(f"{line}\n" for line in lines_of(rows(), width)) == SCREENS[width]


def test_a_wide_terminal_shows_everything() -> None:
    """With room enough nothing is cut or left out, and bytes stay beside the names."""
    table = "\n".join(lines_of(rows(), 220))

    assert "…" not in table
    assert "not shown" not in table
    assert table.splitlines()[1].index("144.0 KiB") < 70
    assert "modified: at version 3, expected 2, as #7" in table
    assert "torchvision/models/resnet.py:93" in table


def test_the_first_rows_only() -> None:
    """The others are counted, with their bytes, and belong to the total."""
    assert lines_of(rows(), top=1)[-3:] == snapshot(
        [
            "3 more rows, 0 B",
            "4 rows, 144.0 KiB held: each storage counted once",
            "not shown at this width: origin, module, source",
        ]
    )


def test_colors() -> None:
    """A status that is not live is red, a parameter has the color that it has in the tree."""
    modified = next(line for line in render_saved_table(rows(), width=120) if "modified" in line.plain)
    styles = {modified.plain[span.start : span.end].strip(): str(span.style) for span in modified.spans}

    assert styles["modified"] == "red"
    assert styles["activation"] == "yellow"


def test_status_of_a_packed_tensor() -> None:
    """A packed tensor names the hook and what it was packed as."""
    row = msgspec.structs.replace(rows()[0], status="packed", status_detail="by hook m.unpack as tuple")

    assert status_text(row) == "packed by hook m.unpack as tuple"


def test_no_rows() -> None:
    """A filter that leaves nothing leaves the heading and an empty total."""
    assert lines_of(())[-1] == "0 rows, 0 B held: each storage counted once"
    assert render_table(SAVED, (), "json") == "[]\n"


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(graphs(), st.integers(30, 130))
def test_one_line_a_row_within_the_width(record: Graph, width: int) -> None:
    """Whatever the strings, each row is one line that fits and holds nothing a terminal obeys."""
    found = saved_rows(record)
    lines = lines_of(found, width)
    table = lines[: len(found) + 1]

    assert len(lines) - len(table) in {1, 2, 3}
    assert all(line.isprintable() and cell_len(line) <= width for line in table)


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(graphs())
def test_json_gives_the_rows_back(record: Graph) -> None:
    """The JSON rows hold every field of every row."""
    found = saved_rows(record)

    assert list(found) == msgspec.convert(json.loads(render_table(SAVED, found, "json")), list[SavedRow])


def folded_lines(width: int, **options: Any) -> list[str]:
    """Return the lines of the folded table of twelve blocks and a head."""
    block = SavedRow(
        node=0, node_name="AddmmBackward0", attribute="_saved_mat1", kind="tensor", value="f32[256, 64]",
        num_bytes=65_536, own_bytes=65_536, status="live", origin="activation", source="model.py:7",
    )  # fmt: skip
    paths = [f"transformer.h.{place}.mlp.c_proj" for place in range(12)]
    found = [msgspec.structs.replace(block, node=n, module=path, module_name=path) for n, path in enumerate(paths)]
    weight = msgspec.structs.replace(block, own_bytes=0, num_bytes=0, weight_bytes=8, attribute="_saved_mat2")
    number = SavedRow(node=12, node_name="ViewBackward0", attribute="_saved_self_sym_sizes", kind="tuple", value="(2)")
    rows = [*found, weight, msgspec.structs.replace(block, node=13, module="", module_name="model"), number]
    return [line.plain for line in render_folded_table(rows, width=width, top=40, **options)]


def test_a_folded_table() -> None:
    """The tensors that hold memory, the largest first; the rest is counted."""
    assert folded_lines(80) == snapshot(
        [
            " #  node   attribute  value                bytes  module              source",
            " 0  Addmm  mat1       f32[256,64] ×12  768.0 KiB  …h.0-11.mlp.c_proj  model.py:7",
            "13  Addmm  mat1       f32[256,64]       64.0 KiB  model               model.py:7",
            "15 rows, 832.0 KiB held (+ 8 B of weights, in memory anyway)",
            "each storage counted once",
            "1 weight or shared tensor and 1 value more: --full",
            "not shown at this width: share, origin",
        ]
    )
    assert folded_lines(60, unicode=False)[1].count("x12") == 1


def test_the_odd_one_of_equal_blocks_is_named() -> None:
    """Below its row."""
    row = SavedRow(node=0, node_name="TanhBackward0", attribute="_saved_result", kind="tensor", value="f32[8]")
    sizes = (32, 32, 512, 32)
    rows = [
        msgspec.structs.replace(row, module=f"{n}", module_name=f"net.{n}", num_bytes=size, own_bytes=size)
        for n, size in enumerate(sizes)
    ]

    assert [line.plain for line in render_folded_table(rows, width=80, top=9)][1:3] == [
        "0  TanhBackward0  _saved_result  f32[8] ×4  608 B  100%  net.0-3",
        "  net.2: 16.0 times the others",
    ]


def test_long_names_of_modules_take_the_room_that_is_left() -> None:
    """They are cut in what their neighbors share, and what is left out is named."""
    row = SavedRow(node=12, node_name="NativeLayerNormBackward0", attribute="_saved_input", kind="tensor",
                   value="f32[64, 128, 768]", num_bytes=4096, own_bytes=4096, status="live")  # fmt: skip
    names = [f"{of}_backbone_of_two.layers.{part}" for of in ("vision", "text") for part in ("norm_before", "norm")]
    rows = [msgspec.structs.replace(row, module=name, module_name=name) for name in names]

    assert [line.plain for line in render_folded_table(rows, width=80, top=9)] == snapshot(
        [
            "node       attribute  value              bytes  module",
            "LayerNorm  input      f32[64,128,768]  4.0 KiB  vision_backb….layers.norm_before",
            "LayerNorm  input      f32[64,128,768]  4.0 KiB  vision_backbone_of_….layers.norm",
            "LayerNorm  input      f32[64,128,768]  4.0 KiB  text_backbon….layers.norm_before",
            "LayerNorm  input      f32[64,128,768]  4.0 KiB  text_backbone_of_two.layers.norm",
            "4 rows, 16.0 KiB held: each storage counted once",
            "In the order of the nodes: --full",
            "not shown at this width: #, share",
        ]
    )


def test_rows_that_only_lines_tell_apart_are_one_where_lines_are_not_shown() -> None:
    """A discriminator that is called on two lines; with room for the lines, each has its row."""
    (weight, *_) = rows()
    calls = [
        msgspec.structs.replace(weight, node=node, origin="activation", origin_name=None, source=f"gan.py:{node}")
        for node in (20, 21)
    ]
    narrow, wide = ([line.plain for line in render_folded_table(calls, width=width, top=9)] for width in (56, 120))

    assert [line for line in narrow if "f32[" in line] == snapshot(
        ["Convolution  f32[64,64,3,3] ×2  288.0 KiB  lay…1.0.conv1"]
    )
    assert [line.rpartition(" ")[2] for line in wide if "f32[" in line] == ["gan.py:20", "gan.py:21"]


def test_lines_of_one_file_are_numbers_before_the_line_goes() -> None:
    """The file is named below; lines of several files keep theirs."""
    (weight, *_) = rows()
    files = ["gan.py:20", "models/gan.py:21", "loss.py:21"]
    calls = [msgspec.structs.replace(weight, node=2, origin="activation", source=source) for source in files]

    assert [line.plain for line in render_folded_table([calls[0]] * 2, width=74, top=9)] == snapshot(
        [
            "node         attribute  value                  bytes  module          line",
            "Convolution  weight     f32[64,64,3,3] ×2  288.0 KiB  layer1.0.conv1  20",
            "2 rows, 288.0 KiB held: each storage counted once",
            "In the order of the nodes: --full",
            "lines of gan.py",
            "not shown at this width: #, share, origin",
        ]
    )
    last = [line.plain.split()[-1] for line in render_folded_table(calls, width=80, top=9)]
    assert last[:4] == ["source", "gan.py:20", "gan.py:21", "loss.py:21"]


def test_single_numbers_are_counted_below_the_table() -> None:
    """Unless there is nothing else."""
    (weight, *_) = rows()
    total = msgspec.structs.replace(weight, attribute="_saved_total_weight", value="f32[]", num_bytes=4, own_bytes=4)
    both, alone = ([line.plain for line in render_folded_table(shown, width=80, top=9)]
                   for shown in ([total, weight], [total]))  # fmt: skip

    assert "1 more tensor, 4 B" in both
    assert not any("total_weight" in line for line in both)
    assert "total_weight" in alone[1]


def test_rows_that_only_origins_tell_apart_are_one_where_these_are_not_shown() -> None:
    """A loss that is computed twice on one line, with targets that have names."""
    (weight, *_) = rows()
    calls = [
        msgspec.structs.replace(weight, node=2, origin=origin, origin_name=origin and "ones", shown_origin="ones")
        for origin in ("input", None)
    ]
    narrow, wide = ([line.plain for line in render_folded_table(calls, width=width, top=9)] for width in (80, 160))

    assert ["×2" in line for line in narrow if "f32[" in line] == [True]
    assert ["×2" in line for line in wide if "f32[" in line] == [False, False]


def test_rows_that_share_say_so_only_where_the_table_does() -> None:
    """Without the column, no rule explains it."""
    assert "as #n" in "".join(lines_of(rows(), 80))
    assert "as #n" not in "".join(lines_of(rows(), 60))


@given(graphs(), st.integers(64, 120), st.booleans())
@settings(max_examples=examples(50))
def test_no_line_of_a_folded_table_is_too_wide(graph: Graph, width: int, unicode: bool) -> None:
    """Whatever a file says."""
    lines = list(render_folded_table(saved_rows(graph), width=width, unicode=unicode, top=5))

    assert all(cell_len(line.plain) <= width for line in lines)
    assert unicode or all(line.plain.isascii() for line in lines)


def test_the_file_of_the_lines_holds_nothing_that_a_terminal_obeys() -> None:
    """It has a line of its own where the lines in it are only numbers."""
    (weight, *_) = rows()
    named = [msgspec.structs.replace(weight, source=f"nö\x1b[2J.py:{line}") for line in (9, 93)]
    lines = [line.plain for line in render_folded_table(named, width=80, unicode=False, top=5)]

    assert [line for line in lines if line.startswith("lines of ")] == ["lines of n\\xf6\\x1b[2J.py"]
    assert all(line.isascii() and line.isprintable() for line in lines)
