"""Two graphs as one, to be drawn."""

from collections import Counter

import pytest
from changed_programs import changed_graph
from factories import graph, leaf, op
from hypothesis import given
from strategies import connected_graphs

from gradinspect.analyses.diff.comparison import diff_graphs
from gradinspect.analyses.diff.union import Union, unite_graphs
from gradinspect.graph import Graph
from gradinspect.storage import decode_graph, encode_graph


def united(before: Graph, after: Graph) -> Union:
    """Unite two graphs; the result must be a valid graph, which reading a file checks."""
    union = unite_graphs(before, after, diff_graphs(before, after))
    assert decode_graph(encode_graph(union.graph, compressed=False), "union.json") == union.graph
    return union


@pytest.mark.slow
@given(connected_graphs(), connected_graphs())
def test_every_node_is_there_once(before: Graph, after: Graph) -> None:
    """All of B, and those that only A has; AccumulateGrad nodes are last."""
    union = united(before, after)
    diff = diff_graphs(before, after)
    counts = Counter(
        status for node, status in zip(union.graph.nodes, union.statuses, strict=True) if node.leaf is None
    )
    kinds = [node.kind == "accumulate_grad" for node in union.graph.nodes]

    assert len(union.graph.nodes) == len(after.nodes) + union.statuses.count("removed")
    assert (counts["added"], counts["removed"]) == (len(diff.added), len(diff.removed))
    assert counts["changed"] == len(diff.changed)
    assert kinds == sorted(kinds)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("clone", {"added": 4}),
        ("sigmoid", {"changed": 4}),
        ("fewer", {"removed": 15}),
        ("copy", {"added": 8, "changed": 4}),
        ("frozen", {"removed": 2, "changed": 1}),
        ("renamed", {}),
    ],
)
def test_what_became_of_nodes(change: str, expected: dict[str, int]) -> None:
    """Leaves included."""
    union = united(changed_graph(), changed_graph(change))

    assert Counter(filter(None, union.statuses)) == expected


def test_removed_nodes_stay_connected() -> None:
    """A parameter that was frozen hangs where it was used, at the position that is None now."""
    union = united(changed_graph(), changed_graph("frozen"))
    lost = [number for number, status in enumerate(union.statuses) if status == "removed"]
    (user,) = [
        node for node in union.graph.nodes if any(e is not None and e.next_node == lost[0] for e in node.next_edges)
    ]

    assert [union.graph.nodes[number].name for number in lost] == ["TBackward0", "AccumulateGrad"]
    assert user.next_edges[2] is not None
    assert user.name == "AddmmBackward0"


def test_an_argument_that_is_gone_is_behind_the_others() -> None:
    """Where its position is not free; nothing is put where nothing was."""
    before = graph(op("CatBackward0", 1, None, 2), leaf("w", 3), leaf("v", 3))
    after = graph(op("CatBackward0", 1), leaf("w", 3))
    cat, *leaves = united(before, after).graph.nodes

    assert [None if edge is None else leaves[edge.next_node - 1].name for edge in cat.next_edges] == [
        "AccumulateGrad", "AccumulateGrad",
    ]  # fmt: skip
    assert sorted(node.leaf.name or "" for node in leaves if node.leaf) == ["v", "w"]
