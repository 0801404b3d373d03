"""Nodes and edges with plain attributes."""

from factories import product_plus_two

from gradinspect.analyses.selection.attributes import plain_edges, plain_nodes


def test_what_a_node_does_not_have_is_an_empty_text() -> None:
    """A leaf has its name, any other node none."""
    assert [(node.attributes["name"], node.attributes["leaf"]) for node in plain_nodes(product_plus_two())] == [
        ("MulBackward0", ""), ("AddBackward0", ""), ("AccumulateGrad", "a"),
    ]  # fmt: skip


def test_only_positions_that_lead_somewhere_are_edges() -> None:
    """Each keeps its position, and has the name of its argument."""
    assert [
        (edge.source, edge.target, edge.attributes["position"], edge.attributes["argument"])
        for edge in plain_edges(product_plus_two())
    ] == [(0, 2, 0, "self"), (0, 1, 1, "other"), (1, 2, 0, "self")]
