"""The rows of a graph in the order of the forward pass, as data."""

import pytest
from factories import graph, leaf, op, residual_blocks
from msgspec.structs import replace

from gradinspect.analyses.structure.folding import Scope, fold_graph
from gradinspect.analyses.structure.forward_order import ForwardRow, forward_rows
from gradinspect.graph import Graph, Hook, ModuleCall


def rows(drawn: Graph, *, depth: int = 9, repeats: bool = True) -> list[ForwardRow]:
    """List a graph down to some depth."""
    return list(forward_rows(drawn, fold_graph(drawn, repeats=repeats), lambda _, level: level < depth))


def takes(found: list[ForwardRow]) -> list[tuple[object, tuple[int, ...]]]:
    """Keep of each row its node, or its kind of scope, and what it takes from."""
    return [(row.item.kind if isinstance(row.item, Scope) else row.item, row.inputs) for row in found]


def linear() -> Graph:
    """`(x @ w.t()).exp()`, where `x` is a product."""
    return graph(
        op("ExpBackward0", 1),
        op("MmBackward0", 3, 2),
        op("TBackward0", 4),
        op("MulBackward0", 5, None),
        leaf("weight", 3),
        leaf("x", 3),
    )


def test_a_row_names_what_it_takes_from_unless_that_is_the_row_above_alone() -> None:
    """Of two sources both are named; leaves are always named, and do not hide that the rest is the row above."""
    forked = graph(
        op("AddBackward0", 1, 2), op("SinBackward0", 2), op("MulBackward0", 3, 4), leaf("a", 3), leaf("b", 3)
    )

    assert takes(rows(forked)) == [(2, (3, 4)), (1, ()), (0, (1, 2))]
    assert takes(rows(linear())) == [(3, (5,)), (1, (4,)), (0, ())]


def test_what_a_node_takes_twice_is_named_once() -> None:
    """`x * x` takes from one place, in the order of the arguments."""
    twice = graph(op("MulBackward0", 2, 1, 2), op("SinBackward0", 3), leaf("a", 3), leaf("b", 3))

    assert takes(rows(twice)) == [(1, (3,)), (0, (2,))]


def test_a_view_of_a_leaf_is_the_leaf() -> None:
    """It has no row, however many views are between; who takes it says which views."""
    chain = graph(op("MmBackward0", 4, 1), op("TBackward0", 2), op("ViewBackward0", 3), leaf("weight", 3), leaf("x", 3))
    (row,) = rows(chain)

    assert (row.item, row.inputs, row.views) == (0, (4, 3), (1,))


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"name": "ExpBackward0"}, id="no view"),
        pytest.param({"hooks": (Hook(kind="pre"),)}, id="a hook, which is to be seen"),
        pytest.param({"next_edges": ()}, id="no way to a leaf"),
    ],
)
def test_what_is_more_than_a_view_of_a_leaf_has_a_row(changed: dict[str, object]) -> None:
    """It does something of its own."""
    drawn = linear()
    nodes = [*drawn.nodes[:2], replace(drawn.nodes[2], **changed), *drawn.nodes[3:]]

    assert [row.item for row in rows(replace(drawn, nodes=tuple(nodes)))] == [3, 2, 1, 0]


def test_a_view_that_two_take_or_that_joins_two_has_a_row() -> None:
    """Neither of the two is its only place; of a joint the second leaf would not be seen."""
    shared = graph(op("AddBackward0", 1, 1), op("TBackward0", 2), leaf("w", 3))
    joint = graph(op("MmBackward0", 1), op("ViewBackward0", 2, 3), leaf("w", 3), leaf("b", 3))
    of_a_node = graph(op("MmBackward0", 1), op("ViewBackward0", 2), op("SinBackward0", 3), leaf("w", 3))

    assert takes(rows(shared)) == [(1, (2,)), (0, ())]
    assert takes(rows(joint)) == [(1, (2, 3)), (0, ())]
    assert takes(rows(of_a_node)) == [(2, (3,)), (1, ()), (0, ())]


def test_the_last_copy_of_an_open_repeat_is_listed() -> None:
    """The forward pass begins with it; its rows are one level deeper."""
    drawn = residual_blocks(3)
    found = rows(drawn)

    assert takes(found) == [("module", ()), (9, (10,)), ("repeat", ()), (8, (10,)), (7, ()), (6, (9, 7))]
    assert [row.level for row in found] == [0, 1, 1, 2, 2, 2]
    assert [row.is_open for row in found] == [True, False, True, False, False, False]


def test_a_closed_scope_takes_what_its_nodes_take_from_outside() -> None:
    """Leaves are not named there, and one source that is the row above is not either."""
    drawn = residual_blocks(3)

    assert takes(rows(drawn, depth=0)) == [("module", ())]
    assert takes(rows(drawn, depth=1)) == [("module", ()), (9, (10,)), ("repeat", ())]


def test_after_an_open_repeat_the_row_above_is_its_first_copy() -> None:
    """A loss that takes from the last block of the forward pass alone does not name it."""
    calls = tuple(ModuleCall(path=f"h.{place}", class_name="Block") for place in range(4))
    blocks = [op(name, 2 * place + at + 2, module=place) for place in range(4)
              for at, name in enumerate(("SinBackward0", "CosBackward0"))]  # fmt: skip
    drawn = graph(op("SumBackward0", 1), *blocks, op("ExpBackward0", None), roots=(0,), modules=calls)
    other = graph(op("AddBackward0", 1, 9), *blocks, op("ExpBackward0", None), roots=(0,), modules=calls)

    assert takes(rows(drawn)) == [(9, ()), ("repeat", ()), (8, ()), (7, ()), (0, ())]
    assert takes(rows(other))[-1] == (0, (1, 9))


def test_a_call_of_one_node_is_that_node() -> None:
    """The row says which call."""
    calls = (ModuleCall(path="act", class_name="ReLU"),)
    (row,) = rows(graph(op("ReluBackward0", 1, module=0), leaf("x", 3), modules=calls))

    assert (row.item, row.call, row.inputs) == (0, 0, (1,))
