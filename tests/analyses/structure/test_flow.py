"""Which items of a scope are listed under which, on graphs made by hand."""

import pytest
from factories import graph, leaf, op

from gradinspect.analyses.structure.flow import Flow, Listed
from gradinspect.graph import Graph, Node


def flow_of(*nodes: Node, first: int = 0, last: int | None = None, after: range = range(0)) -> Flow:
    """Order the nodes of a part of a graph."""
    drawn: Graph = graph(*nodes)
    ops = [number for number, node in enumerate(nodes) if node.kind != "accumulate_grad"]
    return Flow(drawn, ops[first:last], after)


def test_a_node_has_the_place_of_its_item_or_of_what_follows() -> None:
    """Others, before it and behind, have none."""
    row = [op("SinBackward0", number + 1) for number in range(6)]
    flow = flow_of(*row, op("CosBackward0"), first=1, last=4, after=range(4, 6))

    assert [flow.place_of(number) for number in range(7)] == [None, 0, 1, 2, 3, 3, None]
    assert Flow(graph(*row, op("CosBackward0")), [], range(0)).place_of(0) is None


def test_what_nothing_or_no_item_alone_leads_to_is_an_entry() -> None:
    """The continuation of the scope is none."""
    flow = flow_of(op("A", 2), op("B", 2), op("C", 3), op("D"), last=3, after=range(3, 4))

    assert flow.entries() == [0, 1, 2]
    assert flow.listed_under(2) == Listed(trunks=(3,))
    assert flow.listed_under(0) == Listed()


def test_where_ways_meet_is_the_trunk_and_else_the_largest_branch() -> None:
    """NOTE [Trunk and branches]; of branches of one size the last."""
    residual = flow_of(op("A", 1, 2), op("B", 2), op("C"))
    larger = flow_of(op("A", 1, 2), op("B", 3), op("C"), op("D"))
    equal = flow_of(op("A", 1, 2), op("B"), op("C"))

    assert residual.listed_under(0) == Listed(branches=(1,), trunks=(2,))
    assert larger.listed_under(0) == Listed(branches=(2,), trunks=(1,))
    assert equal.listed_under(0) == Listed(branches=(1,), trunks=(2,))


@pytest.mark.parametrize(
    ("nodes", "is_view"),
    [
        ((op("TBackward0", 2), op("MmBackward0"), leaf("w", 3)), True),
        ((op("ToCopyBackward0", 2), op("MmBackward0"), leaf("w", 3)), True),
        ((op("ExpBackward0", 2), op("MmBackward0"), leaf("w", 3)), False),
        ((op("TBackward0", None), op("MmBackward0"), leaf("w", 3)), False),
        ((op("TBackward0", 1), op("ViewBackward0", 2), leaf("w", 3)), True),
        ((op("TBackward0", 1), op("MmBackward0", 2), leaf("w", 3)), False),
        ((op("TBackward0", 1), op("ViewBackward0", None), leaf("w", 3)), False),
    ],
)
def test_views_and_casts_of_a_leaf_are_told_from_what_computes(nodes: tuple[Node, ...], is_view: bool) -> None:
    """Also several in a row; a view of nothing is none."""
    assert flow_of(*nodes).is_view_of_leaf(0) is is_view


def test_a_view_of_a_leaf_is_never_the_trunk() -> None:
    """However many edges meet there."""
    flow = flow_of(op("MmBackward0", 1, 2, 2), op("SinBackward0"), op("TBackward0", 3), leaf("w", 3))

    assert flow.listed_under(0) == Listed(branches=(2,), trunks=(1,))
