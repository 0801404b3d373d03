"""What people change in a program, each with a known answer."""

import pytest
from changed_programs import BLOCKS, changed_graph

from gradinspect.analyses.diff.comparison import diff_graphs
from gradinspect.analyses.diff.records import ChangedRow, Detail, GraphDiff
from gradinspect.analyses.memory.saved_storages import held_bytes_by_node


def diff_to(*changes: str) -> GraphDiff:
    """Compare the network with a changed one."""
    return diff_graphs(changed_graph(), changed_graph(*changes))


def words(rows: tuple[ChangedRow, ...]) -> list[tuple[str, str, str, int]]:
    """Return the main parts of rows."""
    return [(row.kind, row.module, row.what, row.count) for row in rows]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("clone", [("added", f"h.0-{BLOCKS - 1}", "CloneBackward0", BLOCKS)]),
        ("sigmoid", [("changed", f"h.0-{BLOCKS - 1}", "ReluBackward0", BLOCKS)]),
        ("fewer", [("removed", "h.3", "Block", 1)]),
        ("renamed", []),
        ("weight", []),
        (
            "copy",
            [
                ("added", f"h.0-{BLOCKS - 1}", "TBackward0", BLOCKS),
                ("added", f"h.0-{BLOCKS - 1}", "CloneBackward0", BLOCKS),
                ("changed", f"h.0-{BLOCKS - 1}", "ViewBackward0", BLOCKS),
            ],
        ),
    ],
)
def test_operators_are_inserted_replaced_and_removed(change: str, expected: list[tuple[str, str, str, int]]) -> None:
    """Each change is a row, folded over the blocks; nothing else differs."""
    assert words(diff_to(change).rows) == expected


@pytest.mark.parametrize("change", ["clone", "sigmoid", "fewer", "copy"])
def test_the_other_way_round_it_is_removed(change: str) -> None:
    """What B has more than A, A has less."""
    there, back = diff_to(change), diff_graphs(changed_graph(change), changed_graph())
    mirrored = {"added": "removed", "removed": "added", "changed": "changed"}

    assert (there.added, there.removed) == (back.removed, back.added)
    assert sorted((mirrored[row.kind], row.module, row.count) for row in there.rows) == sorted(
        (row.kind, row.module, row.count) for row in back.rows
    )
    assert there.held_bytes.change == -back.held_bytes.change


def test_a_replaced_operator_is_named() -> None:
    """Both of them."""
    (row,) = diff_to("sigmoid").rows

    assert row.details == (Detail("operator", before="ReluBackward0", after="SigmoidBackward0"),)


def test_one_of_several_equal_layers_is_not_the_one_elsewhere() -> None:
    """Four norms are no longer called, and a new block has one: none of them has moved there."""
    diff = diff_to("bare", "another")

    assert {(change.kind, change.before, change.after) for change in diff.module_changes} == {
        *(("removed", f"h.{block}.ln", "") for block in range(BLOCKS)), ("added", "", f"h.{BLOCKS}"),
    }  # fmt: skip
    lost = {change.name for change in diff.leaf_changes if change.kind == "lost"}
    assert lost == {f"h.{block}.ln.{name}" for block in range(BLOCKS) for name in ("weight", "bias")}


@pytest.mark.parametrize("is_inserted", [True, False])
def test_a_layer_that_is_put_between_others_takes_no_leaf_of_theirs(is_inserted: bool) -> None:
    """It has the name that another one had; the leaves of that one follow it."""
    without, added = changed_graph(), changed_graph("inserted", "fewer")
    diff = diff_graphs(without, added) if is_inserted else diff_graphs(added, without)

    kind = "gained" if is_inserted else "lost"
    assert {(change.kind, change.name) for change in diff.leaf_changes if "h.3" not in change.name} == {
        (kind, "tail.1.weight"), (kind, "tail.1.bias"),
    }  # fmt: skip


def test_a_reordered_layer_has_moved() -> None:
    """It has another number and other neighbors; no node is new."""
    diff = diff_to("reordered")

    assert not diff.added
    assert not diff.removed
    assert {(change.kind, change.before, change.after) for change in diff.module_changes} == {
        ("moved", "tail.0", "tail.1"), ("renamed", "tail.1", "tail.0"),
    }  # fmt: skip
    assert {detail.field for row in diff.rows for detail in row.details} == {"inputs"}
    assert diff_graphs(changed_graph(), changed_graph("reordered"), frozenset({"order"})).is_empty


def test_a_frozen_parameter() -> None:
    """It is told apart from one whose module gets no gradient at all."""
    frozen, detached = diff_to("frozen"), diff_to("detach")

    assert [(change.kind, change.name) for change in frozen.leaf_changes] == [("frozen", "h.1.attn.weight")]
    assert {(change.kind, change.name) for change in detached.leaf_changes} == {
        ("lost", "inp.weight"), ("lost", "inp.bias"),
    }  # fmt: skip
    assert [change.kind for change in diff_graphs(changed_graph("frozen"), changed_graph()).leaf_changes] == [
        "unfrozen"
    ]


def test_another_dtype() -> None:
    """Every node is found again, and says its dtypes; bytes are halved."""
    diff = diff_to("half")

    assert not [*diff.added, *diff.removed, *diff.module_changes]
    assert all(Detail("dtype", "output", "f32", "bf16") in row.details for row in diff.rows)
    assert {change.kind for change in diff.leaf_changes} == {"changed"}


def test_autocast_adds_casts() -> None:
    """They are the only new nodes, in the modules that make them."""
    diff = diff_to("autocast")

    assert {row.what for row in diff.rows if row.kind == "added"} == {"ToCopyBackward0"}
    assert ("added", f"h.0-{BLOCKS - 1}.attn", "ToCopyBackward0", 2 * BLOCKS) in words(diff.rows)
    assert not [*diff.removed, *diff.module_changes]


def test_a_renamed_module_keeps_its_nodes() -> None:
    """All blocks have another name, and nothing is new; their parameters follow them."""
    diff = diff_to("renamed")

    assert not [*diff.added, *diff.removed, *diff.leaf_changes]
    assert [(change.kind, change.before, change.after) for change in diff.module_changes] == [
        ("renamed", f"h.{block}", f"blocks.{block}") for block in range(BLOCKS)
    ]


@pytest.mark.parametrize("change", ["clone", "copy", "fewer", "half", "autocast", "frozen"])
def test_bytes_add_up(change: str) -> None:
    """The rows add up to what the whole graph holds more, by the one definition of bytes."""
    diff = diff_to(change)
    totals = [sum(held_bytes_by_node(graph)) for graph in (changed_graph(), changed_graph(change))]

    assert [diff.held_bytes.before, diff.held_bytes.after] == totals
    assert sum(row.held_bytes for row in diff.rows) == totals[1] - totals[0]
