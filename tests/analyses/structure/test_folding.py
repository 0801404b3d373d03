"""Folding by module call and by repeats."""

import pytest
from factories import graph, leaf, op, saved, walk_scopes
from hypothesis import given
from strategies import graphs

from gradinspect.analyses.memory.saved_storages import held_bytes_by_node
from gradinspect.analyses.structure.folding import Item, Scope, fold_graph, later_copies
from gradinspect.graph import Graph, ModuleCall, Node, Storage


def rnn(steps: int) -> Graph:
    """`h = tanh(x[t] @ a + h @ b)`, with a first state that needs no gradient, as PyTorch records it."""
    num_nodes = 4 * steps
    nodes: list[Node] = []
    for first in range(0, num_nodes, 4):
        before = first + 4 if first + 4 < num_nodes else None
        nodes += [
            op("TanhBackward0", first + 1),
            op("AddBackward0", first + 2, first + 3),
            op("MmBackward0", (num_nodes, first // 4), num_nodes + 1),
            op("MmBackward0", before, num_nodes + 2),
        ]
    return graph(*nodes, op("UnbindBackward0", None), leaf("a", 3, 3), leaf("b", 3, 3))


def layers(count: int) -> Graph:
    """Equal layers, each a module call with a residual add and a parameter of its own."""
    nodes = [
        node
        for layer in range(count)
        for node in (
            op("AddBackward0", 3 * layer + 1, 3 * layer + 3, module=layer + 1),
            op("MulBackward0", 3 * layer + 2, 3 * count + 1 + layer, module=layer + 1),
            op("ExpBackward0", 3 * layer + 3, module=layer + 1),
        )
    ]
    calls = [ModuleCall(path=f"h.{count - 1 - layer}", class_name="Layer", parent=0) for layer in range(count)]
    leaves = [leaf(f"h.{count - 1 - layer}.weight", 3) for layer in range(count)]
    return graph(
        *nodes, op("CosBackward0", None, module=0), *leaves, modules=(ModuleCall(path="", class_name="Net"), *calls)
    )


def all_ids(scope: Scope) -> list[int]:
    """List every node id in a scope, copies included."""
    return sorted(
        item
        for inner in walk_scopes(scope)
        for items in (inner.items, *inner.copies)
        for item in items
        if isinstance(item, int)
    )


def shape_of(item: Item) -> object:
    """Describe nesting alone."""
    if isinstance(item, int):
        return "node"
    return item.kind, len(item.copies), tuple(shape_of(inner) for inner in item.items)


def test_steps_fold_to_one() -> None:
    """Equal steps become one repeat; the first step, whose state needs no gradient, stays apart."""
    scope = fold_graph(rnn(50))
    repeat = scope.items[0]

    assert isinstance(repeat, Scope)
    assert (repeat.kind, len(repeat.copies) + 1, repeat.num_nodes) == ("repeat", 49, 196)
    assert scope.items[1:] == (196, 197, 198, 199, 200)


def test_calls_fold_to_one() -> None:
    """Equal calls become one repeat of one item, whatever their parameters are called."""
    module = fold_graph(layers(12)).items[0]

    assert isinstance(module, Scope)
    assert shape_of(module) == ("module", 0, (("repeat", 11, (("module", 0, ("node",) * 3),)), "node"))


def test_copies_keep_their_own_ids() -> None:
    """Each copy holds the ids of its own call, and the copies after the first are one range."""
    module = fold_graph(layers(5)).items[0]
    assert isinstance(module, Scope)
    repeat = module.items[0]
    assert isinstance(repeat, Scope)
    second = repeat.copies[0][0]
    assert isinstance(second, Scope)

    assert second.items == (3, 4, 5)
    assert range(3, 15) == later_copies(repeat)


def test_nothing_folds_when_told_so() -> None:
    """Without repeats only modules are left."""
    kinds = {scope.kind for scope in walk_scopes(fold_graph(layers(12), repeats=False))}

    assert {"graph", "module"} == kinds


def test_repeats_nest() -> None:
    """A repeat in a repeat is found without any modules."""
    inner = ["SinBackward0", "CosBackward0"] * 4
    names = ([*inner, "ExpBackward0"]) * 6
    nodes = [op(name, position + 1 if position + 1 < len(names) else None) for position, name in enumerate(names)]
    (repeat, *_) = fold_graph(graph(*nodes)).items

    assert shape_of(repeat) == ("repeat", 4, (("repeat", 3, ("node", "node")), "node"))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(op("MulBackward0", 5, 20, shape=(9,)), id="output shape"),
        pytest.param(op("MulBackward0", 20, 5), id="argument position"),
        pytest.param(op("MulBackward0", 6, 20), id="edge inside"),
        pytest.param(op("MulBackward0", None, 20), id="no gradient"),
    ],
)
def test_a_different_copy_stays_apart(change: Node) -> None:
    """A step that differs in shape, argument place or wiring is not folded with its neighbours."""
    names = ["MulBackward0", "SinBackward0"] * 10
    nodes = [
        op(name, place + 1 if place < 19 else None, *([20] if place % 2 == 0 else []))
        for place, name in enumerate(names)
    ]
    nodes[4] = change
    scope = fold_graph(graph(*nodes, leaf("w", 2, 3)))

    assert 4 in scope.items


def test_a_call_without_unbroken_ids_is_split() -> None:
    """A call whose nodes are interrupted gives several scopes, so that no cycle can arise."""
    modules = (ModuleCall(path="a", class_name="A"), ModuleCall(path="b", class_name="B"))
    nodes = [op("SinBackward0", place + 1 if place < 2 else None, module=call) for place, call in enumerate((0, 1, 0))]

    assert tuple(map(shape_of, fold_graph(graph(*nodes, modules=modules)).items)) == (("module", 0, ("node",)),) * 3


def test_held_bytes_add_up() -> None:
    """A storage saved twice counts once, in the scope that saves it first."""
    value = saved("_saved_self", 2, 3, storage=0)
    nodes = [op("SinBackward0", place + 1 if place < 2 else None, module=place, saved=(value,)) for place in range(3)]
    modules = tuple(ModuleCall(path=name, class_name="A") for name in "abc")
    scope = fold_graph(graph(*nodes, modules=modules, storages=(Storage(num_bytes=24),)))

    assert [item.held_bytes for item in scope.items if isinstance(item, Scope)] == [24, 0, 0]


@given(graphs())
def test_every_node_is_in_it_once(drawn: Graph) -> None:
    """Every node but AccumulateGrad is folded exactly once, and sizes and bytes are sums."""
    scope = fold_graph(drawn)
    expected = [number for number, node in enumerate(drawn.nodes) if node.kind != "accumulate_grad"]

    assert expected == all_ids(scope)
    assert len(expected) == scope.num_nodes
    assert sum(held_bytes_by_node(drawn)) == scope.held_bytes
