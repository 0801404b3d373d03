"""Find nodes by class, module, size and condition."""

import pytest
from factories import graph, leaf, op, saved
from msgspec.structs import replace

from gradinspect.analyses.selection.finding import find_nodes, folded_nodes
from gradinspect.errors import GradInspectError
from gradinspect.graph import FoundNode, Graph, Hook, ModuleCall, Storage


def attention() -> Graph:
    """Two blocks, whose products hold 1 KiB and 2 KiB."""
    return graph(
        op("SumBackward0", 1, shape=()),
        op("AddmmBackward0", 2, module=2, saved=(saved("_saved_mat1", 512, storage=1, status="modified"),)),
        op("AddmmBackward0", 3, module=1, saved=(saved("_saved_mat1", 256, storage=0),)),
        leaf("h.0.attn.weight", 2, 3),
        storages=(Storage(num_bytes=1024), Storage(num_bytes=2048)),
        modules=(
            ModuleCall(path="", class_name="Net"),
            ModuleCall(path="h.0.attn", class_name="Attention", parent=0),
            ModuleCall(path="h.1.attn", class_name="Attention", parent=0),
        ),
    )


@pytest.mark.parametrize(
    ("criteria", "found"),
    [
        ({}, [0, 1, 2, 3]),
        ({"name": "AddmmBackward0"}, [1, 2]),
        ({"name": "*Backward0", "module": "h.1"}, [1]),
        ({"module": "h.*.attn"}, [1, 2]),
        ({"module": "attn"}, [1, 2]),
        ({"module": "model"}, [1, 2]),
        ({"min_bytes": "2KiB"}, [1]),
        ({"min_bytes": 1024}, [1, 2]),
        ({"where": "bytes>1KiB and module~h.* and status=modified"}, [1]),
        ({"where": "status=live", "name": "Sum*"}, []),
        ({"name": "NoSuchBackward0"}, []),
        ({"module": "encoder"}, []),
    ],
)
def test_all_criteria_must_hold(criteria: dict[str, object], found: list[int]) -> None:
    """In the order of ids; what no node meets finds nothing."""
    assert [node.id for node in find_nodes(attention(), **criteria)] == found  # type: ignore[arg-type]
    assert attention().find(**criteria) == find_nodes(attention(), **criteria)  # type: ignore[arg-type]


def test_nodes_with_hooks_are_found_and_name_them() -> None:
    """Two nodes with different hooks are two rows."""
    hooked = graph(
        op("MulBackward0", 1, hooks=(Hook(kind="post", name="clip"), Hook(kind="pre"))),
        op("SinBackward0", 2),
        leaf("w", 2),
    )
    (found,) = find_nodes(hooked, where="hooks>1")

    assert (found.id, found.hooks) == (0, ("post: clip", "pre: a function"))
    assert find_nodes(hooked, where="hooks>2") == ()
    assert [one.times for one in folded_nodes([replace(found, module="h.0"), replace(found, module="h.1")])] == [2]
    assert [
        one.times
        for one in folded_nodes([replace(found, module="h.0"), replace(found, module="h.1", hooks=("post: log",))])
    ] == [1, 1]


def test_a_found_node_says_what_it_was_found_by() -> None:
    """Its class, module, bytes and the status of what it saves."""
    (found,) = find_nodes(attention(), min_bytes="2KiB")

    assert (found.name, found.module, found.held_bytes, found.statuses) == (
        "AddmmBackward0", "h.1.attn", 2048, ("modified",),
    )  # fmt: skip


@pytest.mark.parametrize("criteria", [{"min_bytes": "much"}, {"where": "bytes>>1"}, {"where": "size>1"}])
def test_what_cannot_be_read_is_an_error_without_options(criteria: dict[str, str]) -> None:
    """It quotes what was given."""
    with pytest.raises(GradInspectError) as caught:
        find_nodes(attention(), **criteria)

    assert "--" not in str(caught.value)


def test_nodes_of_other_sizes_are_one_row_where_rows_are_too_many() -> None:
    """With the least and the greatest of each size."""
    rows = [
        FoundNode(id=copy, name="MmBackward0", module=f"h.{copy}", outputs=(f"f32[{copy + 4}, 8]",))
        for copy in range(2)
    ]

    assert [(one.times, one.node.module, *one.node.outputs) for one in folded_nodes(rows)] == [
        (2, "h.0-1", "f32[4..5, 8]")
    ]
