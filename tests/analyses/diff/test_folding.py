"""Changes that are alike, and the leaves of several modules, as one."""

import pytest
from factories import graph, leaf, op, saved
from msgspec.structs import replace

from gradinspect.analyses.diff.comparison import diff_graphs
from gradinspect.analyses.diff.folding import fold_leaves
from gradinspect.analyses.diff.records import Detail
from gradinspect.analyses.structure.name_folding import OddOne
from gradinspect.graph import Frame, Graph, ModuleCall, Storage, TensorInfo
from gradinspect.renderers.diff_words import described


def experts(*rows: int, dtype: str = "float32") -> Graph:
    """Make a chain of modules, each of which got some rows."""
    nodes = [
        op("ReluBackward0", place + 1, forward_outputs=(TensorInfo(shape=(count, 8), dtype=dtype),), module=place)
        for place, count in enumerate(rows)
    ]
    modules = tuple(ModuleCall(path=f"experts.{place}", class_name="ReLU") for place in range(len(rows)))
    return graph(*nodes, leaf("x", 8), modules=modules)


@pytest.mark.parametrize(
    ("before", "after", "rows"),
    [
        ((18, 39, 20), (30, 33, 30), [("experts.0-2", 3, "[18..39, 8]", "[30..33, 8]")]),
        ((18, 39, 20), (18, 39, 21), [("experts.2", 1, "[20, 8]", "[21, 8]")]),
        ((18, 39), (30, 33), [("experts.0-1", 2, "[18..39, 8]", "[30..33, 8]")]),
        ((18, 18), (30, 30), [("experts.0-1", 2, "[18, 8]", "[30, 8]")]),
    ],
)
def test_changes_that_differ_in_numbers_are_one(
    before: tuple[int, ...], after: tuple[int, ...], rows: list[tuple[str, int, str, str]]
) -> None:
    """With the least and the greatest of each."""
    diff = diff_graphs(experts(*before), experts(*after))

    assert [
        (row.module, row.count, detail.before, detail.after) for row in diff.rows for detail in row.details
    ] == rows  # fmt: skip


@pytest.mark.parametrize(
    ("parameters", "rows"),
    [
        (("h.0.bias", "h.1.bias", "h.2.bias"), [("h.0-2", 3, "h.0-2.bias", "None")]),
        (("h.1.bias", "h.2.bias", "h.3.bias"), [("h.0-2", 3, "h.1-3.bias", "None")]),
        (("h.0.bias", "h.0.bias", "h.0.bias"), [("h.0-2", 3, "h.0.bias", "None")]),
        (("h.0.bias", "h.1.bias", "up3"), [("h.0-1", 2, "h.0-1.bias", "None"), ("h.2", 1, "up3", "None")]),
    ],
)
def test_changes_that_name_a_parameter_of_their_module_are_one(
    parameters: tuple[str, ...], rows: list[tuple[str, int, str, str]]
) -> None:
    """Its number is that of the module, or as far from it in each; no class has a number in this sense."""
    modules = tuple(ModuleCall(path=f"h.{place}", class_name="Norm") for place in range(3))
    leaves = dict.fromkeys(parameters)
    ids = {name: 3 + place for place, name in enumerate(leaves)}
    before, after = (
        graph(
            *(op("AddBackward0", place + 1 if place < 2 else None, ids[name] if has_bias else None, module=place)
              for place, name in enumerate(parameters)),
            *(leaf(name, 3) for name in leaves), modules=modules,
        )
        for has_bias in (True, False)
    )  # fmt: skip
    found = diff_graphs(before, after).rows

    assert sorted(
        (row.module, row.count, detail.before, detail.after) for row in found for detail in row.details
    ) == rows  # fmt: skip


def test_the_module_unlike_the_others_is_named() -> None:
    """By bytes if any are held, or else by what differs; not if all are near each other, or only two."""
    before = experts(18, 20, 19, 21)
    diff = diff_graphs(before, experts(30, 33, 310, 31))
    (row,) = diff.rows

    assert row.odd_one == OddOne("experts.2", 10.0)
    assert described(diff, row) == ["output: [18..21, 8] → [30..310, 8]", "experts.2: 10.0 times the others"]
    assert [row.odd_one for row in diff_graphs(before, experts(30, 33, 34, 31)).rows] == [None]
    assert not any(row.odd_one for row in diff_graphs(experts(18, 20), experts(30, 330)).rows)


def test_the_name_of_a_dtype_is_no_number() -> None:
    """Its digits are not of a range, and no change of it goes together with another."""
    diff = diff_graphs(experts(1, 2, 3), experts(1, 2, 3, dtype="float16"))

    assert [row.details for row in diff.rows] == [(Detail("dtype", "output", "f32", "f16"),)]


def test_the_leaves_of_a_whole_module() -> None:
    """They are one, and modules that differ by their index too."""
    leaves = [f"h.{block}.{name}" for block in (2, 3) for name in ("weight", "bias")]

    assert list(fold_leaves([*leaves, "head.bias"], ["h.2", "h.3"])) == [
        ("h.2-3.*", leaves), ("head.bias", ["head.bias"])
    ]  # fmt: skip


def test_a_row_has_the_nodes_and_bytes_of_its_graph() -> None:
    """What is added holds more, what is removed less."""
    one = graph(op("SinBackward0", 1), leaf("w", 3))
    value = saved("_saved_result", 2, 3, storage=0)
    other = graph(
        op("SinBackward0", 1), op("ExpBackward0", 2, saved=(value,)), leaf("w", 3), storages=(Storage(num_bytes=24),)
    )

    assert [
        (row.kind, row.held_bytes, row.nodes_before, row.nodes_after)
        for pair in ((one, other), (other, one))
        for row in diff_graphs(*pair).rows
    ] == [("added", 24, (), (1,)), ("removed", -24, (1,), ())]


def test_numbers_in_lines_of_code_are_no_range() -> None:
    """Other lines are other changes, also where they name what is in their module."""
    before, after = (
        replace(
            experts(3, 3),
            nodes=tuple(node if node.leaf else replace(node, frame=node.module) for node in experts(3, 3).nodes),
            frames=tuple(Frame(file="train.py", line=4 + place, code=code) for place, code in enumerate(codes)),
        )
        for codes in (("w = x",) * 2, ("self.up0.w = x", "self.up1.w = x"))
    )

    assert [(row.module, row.line, row.nodes_before, row.details) for row in diff_graphs(before, after).rows] == [
        ("experts.1", "train.py:5", (1,), (Detail("line", "", "w = x", "self.up1.w = x"),)),
        ("experts.0", "train.py:4", (0,), (Detail("line", "", "w = x", "self.up0.w = x"),)),
    ]
