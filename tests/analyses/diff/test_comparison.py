"""Two graphs: what must hold for all of them."""

import random

import pytest
from factories import graph, leaf, op, product_plus_two, residual_blocks, tensor_info, two_layers
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from strategies import connected_graphs, graphs

from gradinspect.analyses.diff.comparison import diff_graphs, have_common_modules
from gradinspect.analyses.diff.records import Detail
from gradinspect.graph import Edge, Frame, Graph, ModuleCall, Node, SavedValue, Storage, TensorInfo

MADE = [product_plus_two(), two_layers(), residual_blocks(5)]


def renumbered(old: Graph, seed: int) -> Graph:
    """Number the nodes of a graph in another topological order."""
    rng = random.Random(seed)  # noqa: S311  # no secret
    waits = [0] * len(old.nodes)
    for node in old.nodes:
        for edge in node.next_edges:
            if edge is not None:
                waits[edge.next_node] += 1
    ready, order = [number for number, count in enumerate(waits) if not count], []
    while ready:
        order.append(ready.pop(rng.randrange(len(ready))))
        for edge in old.nodes[order[-1]].next_edges:
            if edge is not None:
                waits[edge.next_node] -= 1
                if not waits[edge.next_node]:
                    ready.append(edge.next_node)
    place = {number: index for index, number in enumerate(order)}
    moved = tuple(
        replace(
            old.nodes[number],
            next_edges=tuple(
                None if edge is None else Edge(place[edge.next_node], edge.input_nr)
                for edge in old.nodes[number].next_edges
            ),
        )
        for number in order
    )
    return replace(old, nodes=moved, roots=tuple(replace(root, node=place[root.node]) for root in old.roots))


@pytest.mark.slow
@given(graphs())
def test_a_graph_equals_itself(one: Graph) -> None:
    """Whatever it contains, also if it was read twice."""
    assert diff_graphs(one, one).is_empty
    assert diff_graphs(one, replace(one, source="other.py", nodes=tuple(map(replace, one.nodes)))).is_empty


@given(connected_graphs(), st.integers(0, 99))
def test_numbers_are_no_difference(one: Graph, seed: int) -> None:
    """A graph with its nodes in another order is the same graph."""
    diff = diff_graphs(one, renumbered(one, seed))

    assert diff.is_empty, diff.rows


@pytest.mark.parametrize("made", MADE, ids=["product", "layers", "blocks"])
@pytest.mark.parametrize("seed", range(5))
def test_numbers_are_no_difference_in_real_graphs(made: Graph, seed: int) -> None:
    """As above, on graphs as programs make them."""
    assert diff_graphs(renumbered(made, seed), made).is_empty


@pytest.mark.slow
@given(connected_graphs(), connected_graphs())
def test_both_directions_say_the_same(one: Graph, other: Graph) -> None:
    """What is added on the way there is removed on the way back."""
    there, back = diff_graphs(one, other), diff_graphs(other, one)

    assert (there.added, there.removed) == (back.removed, back.added)
    assert {(c.node_before, c.node_after, c.held_bytes) for c in there.changed} == {
        (c.node_after, c.node_before, -c.held_bytes) for c in back.changed
    }
    assert {c.node_after: {(d.field, d.name) for d in c.details if d.field != "inputs"} for c in there.changed} == {
        c.node_before: {(d.field, d.name) for d in c.details if d.field != "inputs"} for c in back.changed
    }
    assert there.is_empty == back.is_empty


@pytest.mark.slow
@given(connected_graphs(), connected_graphs())
def test_every_node_is_accounted_for(one: Graph, other: Graph) -> None:
    """The nodes of B are those of A without the removed ones and with the added ones, and rows have each once."""
    diff = diff_graphs(one, other)
    gained, lost = (len([c for c in diff.leaf_changes if c.kind in kinds]) for kinds in
                    ({"gained", "unfrozen"}, {"lost", "frozen"}))  # fmt: skip

    assert len(one.nodes) - len(diff.removed) - lost == len(other.nodes) - len(diff.added) - gained
    assert sorted(n for row in diff.rows if row.kind == "added" for n in row.nodes_after) == sorted(diff.added)
    assert sorted(n for row in diff.rows if row.kind == "removed" for n in row.nodes_before) == sorted(diff.removed)
    assert sum(row.held_bytes for row in diff.rows) == diff.held_bytes.change


def test_a_line_is_its_text() -> None:
    """A line that has moved is the same; one that reads differently is not, unless lines are ignored."""
    one = two_layers()
    moved = replace(one, frames=tuple(replace(frame, line=frame.line + 7) for frame in one.frames))
    changed = replace(one, frames=(Frame(file="train.py", line=8, code="loss = other()"), one.frames[1]))

    assert diff_graphs(one, moved).is_empty
    assert [row.details for row in diff_graphs(one, changed).rows] == [(Detail("line", after="loss = other()"),)]
    assert diff_graphs(one, changed, frozenset({"lines"})).is_empty


def test_bytes_can_be_ignored() -> None:
    """A larger storage behind the same tensor is a difference of bytes only."""
    one = two_layers()
    larger = replace(one, storages=(Storage(num_bytes=32_000), one.storages[1]))

    assert diff_graphs(one, larger).held_bytes.change == 31_680
    assert sum(row.held_bytes for row in diff_graphs(one, larger).rows) == 31_680
    assert diff_graphs(one, larger, frozenset({"bytes"})).is_empty


def test_an_argument_that_only_the_first_graph_has() -> None:
    """It has the name that the first graph gives it."""
    one = graph(op("CatBackward0", 1, 2), leaf("w", 3), leaf("v", 3), arguments={"CatBackward0": ("first", "second")})
    other = replace(one, nodes=(op("CatBackward0", 1), *one.nodes[1:]))
    details = [detail for row in diff_graphs(one, other).rows for detail in row.details]

    assert Detail("inputs", "second", "v", "None") in details


def on_a_gpu(info: TensorInfo) -> TensorInfo:
    """Say of a tensor that it is there."""
    return replace(info, device="cuda:0")


def test_devices_can_be_ignored() -> None:
    """Outputs, saved tensors, leaves, roots and storages that are elsewhere are a difference of devices only."""
    before, after = (product_plus_two(), on_another_device(product_plus_two()))
    found = diff_graphs(before, after)

    assert len(found.rows) == 2
    assert {change.kind for change in found.leaf_changes} == {"changed"}
    assert diff_graphs(before, after, frozenset({"device"})).is_empty
    assert diff_graphs(after, before, frozenset({"device"})).is_empty


def test_a_stored_name_of_a_device_is_one() -> None:
    """A reentrant checkpoint stores a word, other nodes a device; any other word stays a difference."""
    kept = {
        device: op(
            "CheckpointFunctionBackward",
            saved=(
                SavedValue(name="ctx.device_type", kind="str", value=device),
                SavedValue(name="_saved_device", kind="device", value=f"{device}:0"),
            ),
        )
        for device in ("cpu", "cuda", "sum")
    }
    before = graph(kept["cpu"])
    after = on_another_device(graph(kept["cuda"]))

    assert diff_graphs(before, after, frozenset({"device"})).is_empty
    assert not diff_graphs(before, after).is_empty
    assert not diff_graphs(before, graph(kept["sum"]), frozenset({"device"})).is_empty


def on_another_device(one: Graph) -> Graph:
    """Move all tensors of a graph."""
    return replace(
        one,
        nodes=tuple(moved_node(node) for node in one.nodes),
        roots=tuple(replace(root, info=root.info and on_a_gpu(root.info)) for root in one.roots),
        storages=tuple(replace(storage, device="cuda:0") for storage in one.storages),
    )


def moved_node(node: Node) -> Node:
    """Move the tensors of a node."""
    saved = [
        value
        if value.tensor is None
        else replace(value, tensor=replace(value.tensor, info=on_a_gpu(value.tensor.info)))
        for value in node.saved
    ]
    return replace(
        node,
        forward_outputs=tuple(info and on_a_gpu(info) for info in node.forward_outputs),
        saved=tuple(saved),
        leaf=node.leaf and replace(node.leaf, info=on_a_gpu(node.leaf.info)),
    )


def test_an_argument_at_another_position() -> None:
    """`a - b` is not `b - a`."""
    one = graph(op("SubBackward0", 1, 2), op("ExpBackward0", 3), op("SinBackward0", 3), leaf("w", 3),
                arguments={"SubBackward0": ("self", "other")})  # fmt: skip
    other = replace(one, nodes=(op("SubBackward0", 2, 1), *one.nodes[1:]))
    (row,) = diff_graphs(one, other).rows

    assert row.details == (
        Detail("inputs", "self", "ExpBackward0", "SinBackward0"),
        Detail("inputs", "other", "SinBackward0", "ExpBackward0"),
    )


def test_another_operator_has_its_arguments_elsewhere() -> None:
    """Without a bias, the second argument of `addmm` is the first of `mm`: what leads to the same node is not named."""
    nodes = (op("TanhBackward0", 4), op("TBackward0", 5), leaf("bias", 3), leaf("x", 3), leaf("weight", 3))
    names = {"AddmmBackward0": ("self", "mat1", "mat2"), "MmBackward0": ("self", "mat2")}
    one = graph(op("AddmmBackward0", 3, 1, 2), *nodes, arguments=names)
    other = replace(one, nodes=(op("MmBackward0", 1, 2), *one.nodes[1:]))
    details = [detail for row in diff_graphs(one, other).rows for detail in row.details]

    assert details == [
        Detail("operator", before="AddmmBackward0", after="MmBackward0"),
        Detail("inputs", "self", "bias", "None"),
    ]


def test_models_without_a_common_module() -> None:
    """They are told apart from a model that was wrapped."""
    blocks = residual_blocks(3)
    wrapped = replace(blocks, modules=tuple(replace(c, path=f"module.{c.path}".rstrip(".")) for c in blocks.modules))

    assert have_common_modules(blocks, wrapped)
    assert have_common_modules(blocks, product_plus_two())
    assert not have_common_modules(blocks, two_layers())
    assert diff_graphs(blocks, wrapped).rows == ()


def test_classes_whose_numbers_differ_are_counted() -> None:
    """The largest change first; those with as many nodes are left out."""
    before = graph(op("SumBackward0", 1), op("GeluBackward0", 2), op("GeluBackward0", 3), leaf("w", 2))
    after = graph(op("SumBackward0", 1), op("ReluBackward0", 2), op("CloneBackward0", 3), leaf("w", 2))

    assert [(name, pair.before, pair.after) for name, pair in diff_graphs(before, after).classes.items()] == [
        ("GeluBackward0", 2, 0),
        ("CloneBackward0", 0, 1),
        ("ReluBackward0", 0, 1),
    ]
    assert diff_graphs(before, before).classes == {}


def cell(first: str, second: str, num_gates: int) -> Graph:
    """Add the products of two weights, as a recurrent cell does: that of `first` is the first in forward."""
    columns = {"weight_ih": 16, "weight_hh": 32}
    return graph(
        op("AddBackward0", 1, 2, module=0, shape=(4, num_gates)),
        *(op("MmBackward0", at, module=0, shape=(4, num_gates)) for at in (3, 4)),
        *(op("TBackward0", at, module=0, shape=(columns[name], num_gates)) for at, name in ((5, first), (6, second))),
        *(leaf(f"cell.{name}", num_gates, columns[name]) for name in (first, second)),
        modules=(ModuleCall(path="cell", class_name="Cell"),),
    )


def test_nodes_of_a_module_follow_its_leaves() -> None:
    """Where a cell uses its weights in another order, and all shapes are others, too."""
    diff = diff_graphs(cell("weight_ih", "weight_hh", 128), cell("weight_hh", "weight_ih", 96))
    transposed = [row for row in diff.rows if row.what == "TBackward0"]

    assert [(row.count, row.details) for row in transposed] == [
        (2, (Detail("shape", name="output", before="[16..32, 128]", after="[16..32, 96]"),))
    ]
    assert not [row for row in diff.rows if row.what == "MmBackward0" and row.details[-1].field == "inputs"]


def test_the_only_nodes_of_a_module_that_are_left_are_one_that_changed() -> None:
    """Its operator and the size that it has in this step: an activation of an expert that got other rows."""
    one, other = (
        graph(
            op(name, 1, module=0, shape=shape), op("MmBackward0", 2, shape=shape), leaf("w", 3),
            modules=(ModuleCall(path="expert", class_name="Expert"),),
        )
        for name, shape in (("SiluBackward0", (22, 128)), ("GeluBackward0", (23, 128)))
    )  # fmt: skip
    diff = diff_graphs(one, other)

    assert (diff.added, diff.removed) == ((), ())
    assert [(row.kind, row.what, row.details[0]) for row in diff.rows if row.module == "expert"] == [
        ("changed", "SiluBackward0", Detail("operator", before="SiluBackward0", after="GeluBackward0"))
    ]


def test_what_differs_elsewhere_than_in_devices_is_seen() -> None:
    """Tensors that are on another device still have their shapes; outputs that are not there stay so."""
    one = graph(op("SinBackward0", 1, forward_outputs=(tensor_info(2, 3), None)), leaf("w", 3))
    other = graph(op("SinBackward0", 1, forward_outputs=(on_a_gpu(tensor_info(2, 4)), None)), leaf("w", 3))
    (row,) = diff_graphs(one, other, frozenset({"device"})).rows

    assert row.details == (Detail("shape", "output 0", "[2, 3]", "[2, 4]"),)
