"""Nodes that were found, on a terminal."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot
from msgspec.structs import replace
from rich.cells import cell_len
from strategies import examples, graphs

from gradinspect.analyses.selection.finding import find_nodes
from gradinspect.graph import FoundNode, Graph
from gradinspect.renderers.terminal.found import FoundPage

PAGE = FoundPage(width=80)


def nodes(count: int) -> list[FoundNode]:
    """Linear layers of so many blocks, and one that is not in a block."""
    layer = FoundNode(
        id=0, name="AddmmBackward0", module="", line="model.py:7", held_bytes=1024, outputs=("f32[256, 64]",)
    )
    names = [f"transformer.h.{place}.{name}" for place in range(count) for name in ("attn.c_proj", "mlp.c_proj")]
    fields = [{field: getattr(layer, field) for field in layer.__struct_fields__} | {"id": n, "module": name}
              for n, name in enumerate([*names, "head"])]  # fmt: skip
    return [FoundNode(**one) for one in fields]


def test_hooks_are_named_where_they_are_asked_for() -> None:
    """Output and line make room for them."""
    hooked = [replace(nodes(0)[0], hooks=("tensor: print_the_norm_of_this_gradient",))]

    assert [line.plain for line in FoundPage(width=64).lines(hooked, "hooks>0")] == snapshot(
        [
            "#  class    bytes  module  hooks",
            "0  Addmm  1.0 KiB  head    tensor: print_the_…m_of_this_gradient",
            "1 node where hooks>0, 1.0 KiB held",
            "not shown at this width: output, line",
        ]
    )
    assert "print" not in "".join(line.plain for line in PAGE.lines(hooked, "bytes>0"))


def test_equal_blocks_are_one_row() -> None:
    """With the bytes of all, from two on; each one is listed if that is asked for."""
    assert [line.plain for line in PAGE.lines(nodes(12), "bytes>0")] == snapshot(
        [
            " #  class          bytes  module                          line",
            " 0  Addmm  ×12  12.0 KiB  transformer.h.0-11.attn.c_proj  model.py:7",
            " 1  Addmm  ×12  12.0 KiB  transformer.h.0-11.mlp.c_proj   model.py:7",
            "24  Addmm        1.0 KiB  head                            model.py:7",
            "25 nodes where bytes>0, 25.0 KiB held; each one: --full",
            "not shown at this width: output",
        ]
    )
    assert len(list(PAGE.lines(nodes(12), "bytes>0", is_full=True))) == 27
    assert len(list(PAGE.lines(nodes(2), "bytes>0"))) == 5


def test_the_odd_one_of_equal_blocks_is_named() -> None:
    """Below its row, by what the model is called."""
    blocks = [
        FoundNode(id=place, name="TanhBackward0", module=str(place), line="a.py:1", held_bytes=8 << (4 * (place == 3)),
                  outputs=())
        for place in range(8)
    ]  # fmt: skip

    assert [line.plain for line in PAGE.lines(blocks, "bytes>0", model="net")][1:3] == [
        "0  TanhBackward0  ×8  184 B  net.0-7  a.py:1",
        "  net.3: 16.0 times the others",
    ]


@pytest.mark.parametrize("width", [60, 70, 80, 100])
def test_different_modules_stay_different(width: int) -> None:
    """However narrow the page is."""
    lines = [line.plain for line in FoundPage(width=width).lines(nodes(12), "bytes>0", is_full=True)][1:26]

    assert len({line[3:] for line in lines}) == 25


def test_columns_give_way_before_names_are_cut() -> None:
    """The shapes, then the lines; what is not shown is named, and a column that has room again is there."""
    lines = [line.plain for line in FoundPage(width=58).lines(nodes(12), "bytes>0")]
    far = [replace(node, line="a_script_of_a_name_that_is_too_long.py:7") for node in nodes(12)]

    assert lines == snapshot(
        [
            " #  class          bytes  module",
            " 0  Addmm  ×12  12.0 KiB  transformer.h.0-11.attn.c_proj",
            " 1  Addmm  ×12  12.0 KiB  transformer.h.0-11.mlp.c_proj",
            "24  Addmm        1.0 KiB  head",
            "25 nodes where bytes>0, 25.0 KiB held; each one: --full",
            "not shown at this width: output, line",
        ]
    )
    assert [line.plain for line in FoundPage(width=70).lines(far, "bytes>0")][::5] == snapshot(
        [" #  class       output          bytes  module", "not shown at this width: line"]
    )


@given(graphs(), st.integers(60, 120), st.booleans())
@settings(max_examples=examples(50))
def test_no_line_is_too_wide(graph: Graph, width: int, unicode: bool) -> None:
    """Whatever a file says."""
    lines = list(FoundPage(width=width, unicode=unicode).lines(find_nodes(graph), "bytes>=0"))

    assert all(cell_len(line.plain) <= width for line in lines)
    assert unicode or all(line.plain.isascii() for line in lines)
