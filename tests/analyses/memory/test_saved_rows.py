"""The saved-attribute table: rows, filters, order."""

import pytest
from factories import graph, op, product_plus_two, saved, tensor_info
from hypothesis import given
from msgspec.structs import replace
from strategies import graphs

from gradinspect.analyses.memory.saved_rows import (
    SAVED_FIELDS,
    SavedFilter,
    SavedRow,
    filter_rows,
    folded_tensors,
    saved_rows,
)
from gradinspect.analyses.selection.rows import sorted_rows
from gradinspect.errors import GradInspectError
from gradinspect.graph import Frame, Graph, ModuleCall, SavedKind, SavedTensor, SavedValue, Scalar, Storage


def one_row(value: SavedValue) -> SavedRow:
    """Make the row of one saved value."""
    (row,) = saved_rows(graph(op("A", saved=(value,)), storages=(Storage(num_bytes=64),)))
    return row


def model() -> Graph:
    """Two linear layers that save activations and weights of several sizes, and a number."""
    return graph(
        op("AddmmBackward0", 1, module=2, frame=0, saved=(
            saved("_saved_mat1", 4, storage=0), saved("_saved_mat2", 8, storage=1, origin="parameter"),
        )),
        op("MulBackward0", 2, module=1, saved=(saved("_saved_self", 2, storage=0, status="modified"),)),
        op("AddmmBackward0", module=3, saved=(SavedValue(name="_saved_alpha", kind="int", value=1),)),
        storages=(Storage(num_bytes=16), Storage(num_bytes=32, origin="parameter", name="h.0.fc.weight")),
        modules=(
            ModuleCall(path="", class_name="Net"), ModuleCall(path="h.0", class_name="Block", parent=0),
            ModuleCall(path="h.0.fc", class_name="Linear", parent=1),
            ModuleCall(path="h.10", class_name="Block", parent=0),
        ),
        frames=(Frame(file="model.py", line=3),),
    )  # fmt: skip


def kept(wanted: SavedFilter) -> list[str]:
    """Filter the model's rows; name what is left."""
    return [f"{row.node} {row.attribute}" for row in filter_rows(saved_rows(model()), wanted)]


def test_a_row_tells_all_about_a_value() -> None:
    """Node, attribute, value, bytes, origin, module and line are on one row."""
    expected = SavedRow(
        node=0,
        node_name="AddmmBackward0",
        attribute="_saved_mat2",
        kind="tensor",
        value="f32[8]",
        num_bytes=0,
        weight_bytes=32,
        status="live",
        origin="parameter",
        origin_name="h.0.fc.weight",
        module="h.0.fc",
        module_name="h.0.fc",
        shown_origin="h.0.fc.weight",
        source="model.py:3",
    )

    assert expected == saved_rows(model())[1]


def test_a_storage_is_counted_once_and_the_sharing_is_shown() -> None:
    """The second row that keeps a storage shows its bytes, owns none of them, and names the node that counted it."""
    first, _, second, number = saved_rows(model())

    assert (first.num_bytes, first.own_bytes, first.shared_with) == (16, 16, None)
    assert (second.num_bytes, second.own_bytes, second.shared_with) == (16, 0, 0)
    assert (number.num_bytes, number.own_bytes, number.shared_with) == (None, 0, None)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("int", -1, "-1"),
        ("float", 1e-05, "1e-05"),
        ("float", "inf", "inf"),
        ("bool", True, "True"),
        ("none", None, "None"),
        ("str", "mean", "'mean'"),
        ("tuple", (1, 2), "(1, 2)"),
        ("tuple", (), "()"),
        ("complex", "(1+2j)", "(1+2j)"),
        ("dtype", "float32", "float32"),
        ("object", "pkg.Config", "pkg.Config"),
    ],
)
def test_values_read_as_in_python(kind: SavedKind, value: Scalar | tuple[Scalar, ...], expected: str) -> None:
    """A value that is no tensor is written as Python writes it."""
    assert expected == one_row(SavedValue(name="x", kind=kind, value=value)).value


def test_a_transposed_tensor_shows_its_strides() -> None:
    """Strides are shown when the elements do not lie one after the other."""
    tensor = SavedTensor(info=tensor_info(2, 3), num_bytes=24, storage=0, strides=(1, 2))
    row = one_row(SavedValue(name="saved_tensors", index=1, kind="tensor", tensor=tensor, status="live"))

    assert (row.attribute, row.value) == ("saved_tensors[1]", "f32[2, 3] strides (1, 2)")


def test_what_has_become_of_a_value() -> None:
    """A modified tensor tells its versions, a packed one its hook and what it was packed as."""
    tensor = SavedTensor(info=tensor_info(2), num_bytes=8, storage=0, version=3, expected_version=2)
    modified = one_row(SavedValue(name="x", kind="tensor", tensor=tensor, status="modified"))
    packed = one_row(
        SavedValue(
            name="x", kind="tensor", status="packed", packed_as="tuple", unpack_hook="m.unpack", held_storages=(0,)
        )
    )
    freed = one_row(SavedValue(name="x", kind="tensor", status="freed"))

    assert (modified.status, modified.status_detail) == ("modified", "at version 3, expected 2")
    assert (packed.status, packed.status_detail, packed.num_bytes) == ("packed", "by hook m.unpack as tuple", 64)
    assert (freed.status_detail, freed.value, freed.num_bytes) == ("", "", None)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (SavedFilter(), ["0 _saved_mat1", "0 _saved_mat2", "1 _saved_self", "2 _saved_alpha"]),
        (SavedFilter(node="Addmm*"), ["0 _saved_mat1", "0 _saved_mat2", "2 _saved_alpha"]),
        (SavedFilter(name="_saved_mat*"), ["0 _saved_mat1", "0 _saved_mat2"]),
        (SavedFilter(name="mat1"), ["0 _saved_mat1"]),
        (SavedFilter(name="*.weight"), ["0 _saved_mat2"]),
        (SavedFilter(status="modified"), ["1 _saved_self"]),
        (SavedFilter(status="freed"), []),
        (SavedFilter(kind="int"), ["2 _saved_alpha"]),
        (SavedFilter(kind="int", node="Mul*"), []),
    ],
)
def test_filters(wanted: SavedFilter, expected: list[str]) -> None:
    """Each filter keeps its rows, and all must hold."""
    assert expected == kept(wanted)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (
            SavedFilter(node="AddMM*"),
            'No node class with saved attributes matches "AddMM*". Closest matches: "AddmmBackward0".',
        ),
        (SavedFilter(status="lively"), 'No status matches "lively". Closest matches: "live".'),
        (
            SavedFilter(status="zzz"),
            'No status matches "zzz". Available: "checkpointed", "freed", "live", "modified", "packed", "unreadable".',
        ),
    ],
)
def test_a_pattern_that_matches_nothing(wanted: SavedFilter, expected: str) -> None:
    """A slip of the finger gets the nearest names there are, without regard to case."""
    with pytest.raises(GradInspectError) as caught:
        kept(wanted)

    assert expected == str(caught.value)


def test_brackets_of_a_list_are_no_pattern() -> None:
    """`saved_tensors[1]` is found by its own name, though brackets mean something in a pattern."""
    rows = saved_rows(graph(op("A", saved=tuple(SavedValue(name="s", index=i, kind="tensor") for i in range(2)))))

    assert filter_rows(rows, SavedFilter(name="s[1]")) == rows[1:]


def test_order() -> None:
    """By bytes the largest come first, equals and numbers stay in the order of the graph."""
    rows = saved_rows(model())

    assert [row.num_bytes for row in sorted_rows(rows, SAVED_FIELDS, "bytes")] == [16, 16, 0, None]
    assert sorted_rows(rows, SAVED_FIELDS, "graph") == rows
    assert saved_rows(product_plus_two())[2].value == "1"


def blocks(count: int) -> Graph:
    """Equal blocks that save an activation each, of which the last is larger, and a number."""
    return graph(
        *(
            op("MulBackward0", *([place + 1] if place + 1 < count else []), module=place + 1, saved=(
                saved("_saved_self", 8 if place == count - 1 else 4, storage=place),
                SavedValue(name="_saved_alpha", kind="int", value=1),
            ))
            for place in range(count)
        ),
        storages=tuple(Storage(num_bytes=32 if place == count - 1 else 16) for place in range(count)),
        modules=(
            ModuleCall(path="", class_name="Net"),
            *(ModuleCall(path=f"h.{place}", class_name="Block", parent=0) for place in range(count)),
        ),
    )  # fmt: skip


def test_the_tensors_of_equal_blocks_are_one_row() -> None:
    """The largest first, with the bytes of all; numbers are no tensors."""
    folded = folded_tensors(saved_rows(blocks(5)))

    assert [(one.row.module_name, one.times, one.row.own_bytes, one.row.value) for one in folded] == [
        ("h.0-4", 5, 96, "f32[4..8]")
    ]  # fmt: skip


def test_what_compiled_blocks_keep_is_one_row() -> None:
    """The place among all that is kept, which is another in each block, is left out; of a single tensor it stays."""
    nodes = [
        op("aten.mm", kind="compiled", module=place, saved=(
            replace(saved("saved_tensors", 4, storage=place), index=7 * place, operator="aten.view"),
        ))
        for place in range(3)
    ]  # fmt: skip
    paths = ("h.0", "h.1", "head")
    record = graph(
        *nodes,
        storages=(Storage(num_bytes=16),) * 3,
        modules=tuple(ModuleCall(path=path, class_name="Block") for path in paths),
    )
    folded = folded_tensors(saved_rows(record))

    assert [(one.row.attribute, one.row.module_name, one.times) for one in folded] == [
        ("aten.view", "h.0-1", 2), ("aten.view[14]", "head", 1)
    ]  # fmt: skip


def test_those_of_other_sizes_are_one_too() -> None:
    """As the rows that each expert got; the bytes are those of all."""
    sizes = (13, 36, 13, 20)
    experts = graph(
        *(op("MmBackward0", n + 1 if n < 3 else None, module=n, saved=(saved("_saved_self", size, 8, storage=n),))
          for n, size in enumerate(sizes)),
        storages=tuple(Storage(num_bytes=32 * size) for size in sizes),
        modules=tuple(ModuleCall(path=f"experts.{n}", class_name="Expert") for n in range(4)),
    )  # fmt: skip

    rows = folded_tensors(saved_rows(experts))

    assert [(one.row.module, one.row.value, one.row.own_bytes, one.times) for one in rows] == [
        ("experts.0-3", "f32[13..36, 8]", 2624, 4)
    ]


@given(graphs())
def test_nothing_is_lost_where_rows_are_one(graph: Graph) -> None:
    """Neither a tensor nor a byte."""
    found = saved_rows(graph)
    folded = folded_tensors(found)

    assert sum(one.times for one in folded) == sum(row.kind == "tensor" for row in found)
    assert sum(one.row.own_bytes for one in folded) == sum(row.own_bytes for row in found)
    assert [one.row.own_bytes for one in folded] == sorted((one.row.own_bytes for one in folded), reverse=True)
