"""The record itself: frozen, and with the forward argument of each edge."""

import pytest
from factories import graph, op, product_plus_two

from gradinspect.graph import Graph, argument_name, nodes_named


def names_of(arguments: tuple[str, ...], num_edges: int) -> list[str | None]:
    """Name every place of a node with so many edges."""
    record = graph(op("A", *[None] * num_edges), arguments={"A": arguments})
    return [argument_name(record, record.nodes[0], position) for position in range(num_edges)]


@pytest.mark.parametrize(
    ("arguments", "num_edges", "expected"),
    [
        (("self", "other"), 2, ["self", "other"]),
        (("tensors*",), 3, ["tensors[0]", "tensors[1]", "tensors[2]"]),
        (("tensors*",), 0, []),
        (("self", "indices*"), 3, ["self", "indices[0]", "indices[1]"]),
        (("indices*", "values"), 3, ["indices[0]", "indices[1]", "values"]),
        (("input", "weights*", "hx"), 2, ["input", "hx"]),
        (("a*", "b*"), 4, ["a[0]", "a[1]", "b[0]", "b[1]"]),
        (("a*", "b*"), 3, [None] * 3),
        (("self", "other"), 3, [None] * 3),
        (("self", "other", "tensors*"), 1, [None]),
        ((), 1, [None]),
    ],
)
def test_argument_name(arguments: tuple[str, ...], num_edges: int, expected: list[str | None]) -> None:
    """Each place has the argument it belongs to, lists take what is left over, and a misfit names nothing."""
    assert expected == names_of(arguments, num_edges)


def test_argument_name_of_an_unknown_class() -> None:
    """A node that the catalogue does not know has no argument names."""
    record = graph(op("Mystery", None))

    assert argument_name(record, record.nodes[0], 0) is None


def test_nodes_are_found_by_the_beginning_of_their_name() -> None:
    """All nodes whose name begins in one of the given ways are listed, in order, and no others."""
    record = graph(op("SoftmaxBackward0", 1), op("MulBackward0", 2), op("LogSoftmaxBackward0", 3), op("MulBackward1"))

    assert nodes_named(record, ("SoftmaxBackward", "LogSoftmaxBackward")) == [0, 2]
    assert nodes_named(record, "MulBackward") == [1, 3]
    assert not nodes_named(record, "TanhBackward")


def test_a_graph_cannot_be_changed() -> None:
    """No field of any record can be assigned, so a result may be kept as long as one likes."""
    record = product_plus_two()
    for part, field in ((record, "nodes"), (record.nodes[0], "name"), (record.nodes[0].next_edges[0], "next_node")):
        with pytest.raises(AttributeError):
            setattr(part, field, None)

    assert record == product_plus_two()


def test_graphs_do_not_share_their_defaults() -> None:
    """Two graphs made without arguments do not share one dict."""
    first, second = graph(op("A")), graph(op("A"))

    assert isinstance(first, Graph)
    assert first.arguments is not second.arguments
