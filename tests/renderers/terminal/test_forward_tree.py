"""The graph in the order of the forward pass."""

import pytest
from factories import graph, leaf, op
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import examples, graphs

from gradinspect.analyses.structure.folding import fold_graph
from gradinspect.analyses.structure.forward_order import forward_rows
from gradinspect.graph import Graph, ModuleCall
from gradinspect.renderers.terminal.trees.forward_tree import render_forward
from gradinspect.renderers.terminal.trees.tree import TreeOptions


def residual() -> Graph:
    """Two layers, and a sum that takes what went into the second as well."""
    return graph(
        op("SumBackward0", 1), op("AddBackward0", 3, 2), op("AddmmBackward0", 6, 3, 4, module=2),
        op("ReluBackward0", 5, module=1), op("TBackward0", 7, module=2), op("MulBackward0", 8, None, module=1),
        leaf("fc.bias", 3), leaf("fc.weight", 4), leaf("scale", 3),
        modules=(
            ModuleCall(path="", class_name="Net"), ModuleCall(path="act", class_name="Act", parent=0),
            ModuleCall(path="fc", class_name="Linear", parent=0),
        ),
    )  # fmt: skip


def screen(record: Graph, **options: object) -> list[str]:
    """Return the lines."""
    return [line.plain for line in render_forward(record, TreeOptions(**options))]  # type: ignore[arg-type]


LEGEND = "forward: inputs first · ← where an op takes tensors from"
SCREEN = [
    "▾ #2–5  model  Net  4 nodes",
    "┊ #5 MulBackward0  f32[2, 3]  act Act  [1]: None  ← ◆ scale",
    "┊ #3 ReluBackward0  f32[2, 3]  act Act",
    "┊ #2 AddmmBackward0  f32[2, 3]  fc Linear  ← ◆ fc.bias, ◆ fc.weight",
    "#1 AddBackward0  f32[2, 3]  ← #3, #2",
    "root: #0 SumBackward0  f32[2, 3]",
]


@pytest.mark.parametrize(
    ("width", "legend"),
    [(80, LEGEND), (120, f"{LEGEND} · ◆ leaf (AccumulateGrad)"), (200, f"{LEGEND} · ◆ leaf (AccumulateGrad)")],
)
def test_the_inputs_come_first(width: int, legend: str) -> None:
    """Each row names what it takes from, unless that is the row above; a view of a weight is the weight."""
    assert screen(residual(), width=width) == [*SCREEN, legend]


def test_after_a_repeat_the_copy_that_is_not_listed_is_the_row_above() -> None:
    """Of three blocks the first of the forward pass is listed, and the loss takes from the last."""
    blocks = graph(
        op("SumBackward0", 1), *(op("TanhBackward0", number + 1, module=number) for number in (1, 2, 3)),
        op("MulBackward0", 5), leaf("w", 3),
        modules=(ModuleCall(path="", class_name="Net"),
                 *(ModuleCall(path=f"h.{number}", class_name="Block", parent=0) for number in (2, 1, 0))),
    )  # fmt: skip
    rows = screen(blocks)

    assert rows[0].startswith("#4 MulBackward0")
    assert rows[-2] == "root: #0 SumBackward0  f32[2, 3]"
    assert "←" not in "".join(rows[1:-1])


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(graphs(), st.integers(30, 160), st.booleans())
def test_each_node_once_and_within_the_width(record: Graph, width: int, unicode: bool) -> None:
    """Whatever the graph; a node comes after all nodes that it takes from."""
    rows = list(forward_rows(record, fold_graph(record, repeats=False), lambda *_: True))
    seen: list[int] = []
    for row in rows:
        if isinstance(row.item, int):
            seen += [*row.views, row.item]
    expected = {number for number, node in enumerate(record.nodes) if node.kind != "accumulate_grad"}

    assert sorted(seen) == sorted(expected)
    for line in render_forward(record, TreeOptions(width=width, unicode=unicode, full=True, max_rows=None)):
        assert line.cell_len <= width
        assert line.plain.isprintable()
        assert unicode or line.plain.isascii()
