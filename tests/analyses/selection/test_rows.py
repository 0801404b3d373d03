"""The rows that --top, --module, --where and --sort choose."""

import pytest
from factories import graph, leaf, op, saved
from msgspec.structs import replace

from gradinspect.analyses.selection.node_conditions import chosen_nodes, nodes_where
from gradinspect.analyses.selection.rows import ALL_ROWS, Fields, RowChoice, chosen_rows, sorted_rows
from gradinspect.errors import GradInspectError
from gradinspect.graph import Frame, Graph, ModuleCall, Storage

FIELDS: Fields[tuple[str, float | None]] = {"module": lambda row: (row[0],), "norm": lambda row: (row[1],)}
ROWS = (("h.0.fc", 1.0), ("h.0", None), ("h.1", 3.0), ("", float("nan")))
MODULES = ("h.0.fc", "h.0", "h.1")


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (RowChoice(), [0, 1, 2, 3]),
        (RowChoice(sort="graph"), [0, 1, 2, 3]),
        (RowChoice(sort="norm"), [3, 2, 0, 1]),
        (RowChoice(sort="module"), [3, 1, 0, 2]),
        (RowChoice(module="h.0"), [0, 1]),
        (RowChoice(module="fc"), [0]),
        (RowChoice(where="norm>=1"), [0, 2]),
        (RowChoice(module="h.*", where="norm>=1", sort="norm"), [2, 0]),
    ],
)
def test_rows_are_chosen_and_sorted(choice: RowChoice, expected: list[int]) -> None:
    """A module has the modules inside; the largest numbers are first, and what is not a number before them."""
    assert [ROWS[index] for index in expected] == list(chosen_rows(ROWS, FIELDS, choice, MODULES))


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (RowChoice(sort="size"), "The rows cannot be sorted by 'size'. Available: graph, module, norm."),
        (RowChoice(module="h.9"), 'No module matches "h.9".'),
        (RowChoice(where="size>1"), 'This table has no field "size". Available: module, norm.'),
    ],
)
def test_what_a_table_does_not_have(choice: RowChoice, expected: str) -> None:
    """It is named, with what there is."""
    with pytest.raises(GradInspectError) as caught:
        chosen_rows(ROWS, FIELDS, choice, MODULES)

    assert expected in str(caught.value)


def test_rows_without_a_value_are_last() -> None:
    """Also if a field has none of them."""
    assert sorted_rows((1, 2), {"a": lambda row: () if row == 1 else ("x",)}, "a") == (2, 1)


def product() -> Graph:
    """A product in a module, which has saved what is called `h`, and a leaf."""
    value = replace(saved("_saved_self", 4, storage=0), origin_name="h")
    return graph(
        op("MulBackward0", 1, module=1, frame=0, saved=(value,)), leaf("w", 4),
        modules=(ModuleCall(path="", class_name="Net"), ModuleCall(path="fc", class_name="Linear", parent=0)),
        frames=(Frame(file="a.py", line=3),), storages=(Storage(num_bytes=16),),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("bytes=16", {0}), ("class~Mul", {0}), ("line=a.py:3", {0}), ("module=fc", {0}), ("name=w", {1}),
        ("name=h", {0}), ("status=live", {0}), ("dtype=float32", {0, 1}), ("shape~f32", {0, 1}), ("bytes>16", set()),
    ],
)  # fmt: skip
def test_fields_of_nodes(condition: str, expected: set[int]) -> None:
    """Each field that a node has."""
    assert expected == nodes_where(product(), condition)


def test_both_options_must_hold() -> None:
    """And without any, all nodes are chosen."""
    assert chosen_nodes(product(), None, None) is None
    assert chosen_nodes(product(), "fc", "name=w") == frozenset[int]()


def test_rows_are_a_part_if_they_are_chosen_by_what_they_are() -> None:
    """By either option; the first of all rows, and other orders, leave out none of a kind."""
    assert [choice.is_part for choice in (RowChoice(module="h"), RowChoice(where="norm>1"))] == [True, True]
    assert [choice.is_part for choice in (ALL_ROWS, RowChoice(top=3, sort="norm"))] == [False, False]
