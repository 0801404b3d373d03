"""Folding by module call and by repeats."""

import pytest
from factories import graph, leaf, op, saved, walk_scopes
from hypothesis import given, settings
from strategies import examples, graphs

from gradinspect.analyses.memory.saved_storages import held_bytes_by_node
from gradinspect.analyses.structure.folding import Item, Scope, fold_graph, ids_of_copy, later_copies, node_ids
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

    assert shape_of(repeat) == ("repeat", 5, (("repeat", 3, ("node", "node")), "node"))


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


@settings(max_examples=examples(30))
@given(graphs())
def test_every_node_is_in_it_once(drawn: Graph) -> None:
    """Every node but AccumulateGrad is folded exactly once, and sizes and bytes are sums."""
    scope = fold_graph(drawn)
    expected = [number for number, node in enumerate(drawn.nodes) if node.kind != "accumulate_grad"]

    assert expected == all_ids(scope)
    assert len(expected) == scope.num_nodes
    assert sum(held_bytes_by_node(drawn)) == scope.held_bytes


def test_what_is_outside_of_all_modules_is_so_after_a_module_too() -> None:
    """Of a loss, two calls and what the script itself did with the input, the ends are outside of the calls."""
    calls = (
        ModuleCall(path="", class_name="Net"),
        ModuleCall(path="a", class_name="A", parent=0),
        ModuleCall(path="a.b", class_name="B", parent=1),
        ModuleCall(path="a.c", class_name="C", parent=1),
    )
    nodes = [op(f"Op{place}", place + 1, module=call) for place, call in enumerate((None, 2, 2, 3, 1, 0, None, 3))]
    folded = fold_graph(graph(*nodes, op("Last", None), modules=calls))

    assert nested(folded) == (0, ("", ("a", ("a.b", 1, 2), ("a.c", 3), 4), 5), 6, ("", ("a", ("a.c", 7))), 8)


def nested(scope: Scope) -> tuple[object, ...]:
    """Write a tree of modules of the test above as nested tuples."""
    paths = ("", "a", "a.b", "a.c")
    return tuple(
        item if isinstance(item, int) else (paths[item.module or 0], *nested(item))
        for item in scope.items
    )  # fmt: skip


def test_ranges_of_ids() -> None:
    """Of a node, a scope with its copies, one copy, and the copies after one."""
    repeat = Scope(kind="repeat", items=(2, 3), copies=((4, 5), (6, 7)), num_nodes=6, held_bytes=0)
    lone = Scope(kind="module", items=(8,), num_nodes=1, held_bytes=0)
    outer = Scope(kind="module", items=(1, repeat, lone), num_nodes=8, held_bytes=0)

    assert [node_ids(item) for item in (7, repeat, lone, outer)] == [
        range(7, 8), range(2, 8), range(8, 9), range(1, 9),
    ]  # fmt: skip
    assert [ids_of_copy(repeat, copy) for copy in range(3)] == [range(2, 4), range(4, 6), range(6, 8)]
    assert [list(later_copies(repeat, copy)) for copy in range(3)] == [[4, 5, 6, 7], [6, 7], []]
    assert not later_copies(lone)


def test_a_repeat_has_the_bytes_of_all_copies() -> None:
    """And the nodes; what is before and after it is not counted."""
    values = [saved("_saved_self", size, storage=size) for size in range(10)]
    names = "x" + "ab" * 4 + "y"
    nodes = [op(name, place + 1 if place < 9 else None, saved=(values[place],)) for place, name in enumerate(names)]
    folded = fold_graph(graph(*nodes, storages=tuple(Storage(num_bytes=4 * size) for size in range(10))))
    repeat = folded.items[1]

    assert isinstance(repeat, Scope)
    assert (folded.items[0], folded.items[2]) == (0, 9)
    assert (repeat.num_nodes, repeat.held_bytes) == (8, 4 * sum(range(1, 9)))
    assert folded.held_bytes == 4 * sum(range(10))


def test_calls_of_different_classes_or_contents_are_not_copies() -> None:
    """Of six calls those two that differ stand between the others."""
    calls = tuple(ModuleCall(path=f"h.{place}", class_name="B" if place == 2 else "A") for place in range(12))
    nodes = [
        op("Odd" if at == 1 and place == 7 else f"Op{at}", 2 * place + at + 1, module=place)
        for place in range(12)
        for at in range(2)
    ]
    items = fold_graph(graph(*nodes, op("Last", None), modules=calls)).items

    assert [node_ids(item) for item in items] == [
        range(2), range(2, 4), range(4, 6), range(6, 14), range(14, 16), range(16, 24), range(24, 25),
    ]  # fmt: skip


def test_repeats_of_modules_that_contain_repeats_are_equal_by_what_is_in_them() -> None:
    """Three blocks of five equal ops each are three copies; a block of six ops is none."""
    calls = tuple(ModuleCall(path=f"h.{place}", class_name="A") for place in range(4))
    sizes = (5, 5, 5, 6)
    places = [place for place, size in enumerate(sizes) for _ in range(size)]
    nodes = [op("Op", number + 1, module=place) for number, place in enumerate(places)]
    items = fold_graph(graph(*nodes, op("Last", None), modules=calls)).items

    assert [shape_of(item) for item in items] == [
        ("repeat", 2, (("module", 0, (("repeat", 4, ("node",)),)),)),
        ("module", 0, (("repeat", 5, ("node",)),)),
        "node",
    ]


def test_chains_of_views_are_copies_where_their_views_are() -> None:
    """Folded views are one item of the blocks around them; a chain ends at a module."""
    names = ["View", "T", "Exp"] * 4
    nodes = [op(f"{name}Backward0", place + 1) for place, name in enumerate(names)]
    folded = fold_graph(graph(*nodes, op("Last", None)), shapes=True)
    split = [op("ViewBackward0", place + 1, module=(None, None, 0, 0, None)[place]) for place in range(5)]
    inside = fold_graph(
        graph(*split, op("Last", None), modules=(ModuleCall(path="a", class_name="A"),)), shapes=True, repeats=False
    )

    assert [shape_of(item) for item in folded.items] == [
        ("repeat", 3, (("shapes", 0, ("node", "node")), "node")),
        "node",
    ]
    assert [shape_of(item) for item in inside.items] == [
        ("shapes", 0, ("node", "node")),
        ("module", 0, (("shapes", 0, ("node", "node")),)),
        "node",
        "node",
    ]
