"""The rows of a graph: order, indentation, and that nothing is told twice or never."""

from collections import Counter

from factories import graph, leaf, op, product_plus_two
from hypothesis import given
from hypothesis import strategies as st

from gradinspect.analyses.structure.folding import Scope, fold_graph, node_ids
from gradinspect.analyses.structure.outline import leaf_uses, leaves_of, outline
from gradinspect.analyses.structure.outline_rows import Row, split_row
from gradinspect.graph import Graph, ModuleCall, Node


def rows_of(drawn: Graph, *, depth: int = 99, repeats: bool = False) -> list[Row]:
    """Tell a graph down to some depth."""
    return list(outline(drawn, fold_graph(drawn, repeats=repeats), lambda _, level: level < depth))


def told(rows: list[Row]) -> list[tuple[int, tuple[int, ...]]]:
    """Keep each row's indentation and nodes."""
    return [(len(row.guides), row.nodes) for row in rows if row.kind == "node"]


@st.composite
def flows(draw: st.DrawFn, num_modules: int = 3) -> Graph:
    """Draw a graph with parallel edges, several roots, nodes no root reaches, module calls, and one leaf."""
    size = draw(st.integers(1, 14))
    calls = sorted(draw(st.lists(st.integers(0, num_modules), min_size=size, max_size=size)))
    nodes: list[Node] = []
    for place in range(size):
        edges = draw(st.lists(st.none() | st.integers(place + 1, size), max_size=4))
        name = draw(st.sampled_from(["MulBackward0", "TBackward0", "AddBackward0"]))
        nodes.append(op(name, *edges, module=(None, 0, 1, 2)[calls[place]]))
    modules = tuple(
        ModuleCall(path=path, class_name="A", parent=parent) for path, parent in (("a", None), ("a.b", 0), ("c", None))
    )
    roots = tuple(draw(st.lists(st.integers(0, size - 1), max_size=3, unique=True)))
    return graph(*nodes, leaf("w", 2), roots=roots, modules=modules)


def test_a_chain_is_not_indented() -> None:
    """Nodes that follow one another stand in one column."""
    nodes = [op("SinBackward0", place + 1, saved=()) for place in range(4)]
    rows = rows_of(graph(*nodes, op("AddBackward0", 5, 5), leaf("x", 2)))

    assert [(0, (place,)) for place in range(5)] == told(rows)


def test_the_meeting_place_returns_to_the_column_of_the_fork() -> None:
    """After a residual branch the place where both ways meet stands under the fork; the branch refers to it."""
    residual = graph(
        op("AddBackward0", 3, 1),
        op("ReluBackward0", 2),
        op("MulBackward0", 3, None),
        op("SinBackward0", 4),
        op("CosBackward0"),
    )
    rows = rows_of(residual)

    assert told(rows) == [(0, (0,)), (1, (1,)), (1, (2,)), (0, (3,)), (0, (4,))]
    assert [link.edge.next_node for link in rows[2].targets] == [3]


def test_a_branch_that_ends_in_a_leaf_shares_a_row_with_it() -> None:
    """A transposed weight is one row at the side of its use."""
    linear = graph(op("MmBackward0", 1, 2), op("ReluBackward0"), op("TBackward0", 3), leaf("weight", 4, 3))
    rows = rows_of(linear)

    assert told(rows) == [(0, (0,)), (1, (2,)), (0, (1,))]
    assert rows[1].ends_in_leaf
    assert [(row.kind, len(row.guides)) for row in split_row(rows[1])] == [("node", 1), ("leaf", 2)]


def test_a_shared_leaf_is_told_at_each_use() -> None:
    """A leaf used twice has two chips, and both are counted."""
    rows = rows_of(product_plus_two())

    assert sum(row.targets[0].edge.next_node == 2 for row in rows if row.targets) == 2
    assert Counter({2: 2}) == leaf_uses(product_plus_two())
    assert {2} == leaves_of(product_plus_two(), 0)


def test_parallel_edges_share_a_row() -> None:
    """Two edges to one node are two links on its row."""
    rows = rows_of(graph(op("MulBackward0", 1, 1), op("ExpBackward0")))

    assert [(link.edge.input_nr, link.edge.next_node) for link in rows[1].links[:1]] == [(0, 1)]
    assert len(rows[1].links) == 2


def test_a_leaf_can_be_a_root() -> None:
    """An output that is a leaf itself has a row."""
    rows = rows_of(graph(leaf("x", 2)))

    assert [row.kind for row in rows] == ["leaf"]


def test_a_graph_without_nodes_has_no_rows() -> None:
    """Nothing to tell is told as nothing."""
    assert rows_of(graph(roots=())) == []


@given(flows())
def test_every_node_is_told_once(drawn: Graph) -> None:
    """With all scopes open, each node has exactly one row, before the nodes its gradients go to in its column."""
    rows = rows_of(drawn)
    nodes = Counter(node for row in rows for node in row.nodes)

    assert Counter(range(len(drawn.nodes) - 1)) == nodes


@given(flows(num_modules=0))
def test_every_edge_is_told_once(drawn: Graph) -> None:
    """Each edge leads to a row, or is a row's way on, or joins the nodes of one row; parallel ones are all told."""
    told_edges: Counter[int] = Counter()
    for row in rows_of(drawn):
        links = (*row.links, *row.targets) if row.kind == "node" else row.targets
        told_edges.update([*(link.edge.next_node for link in links), *row.nodes[1:]])

    assert told_edges == Counter(edge.next_node for node in drawn.nodes for edge in node.next_edges if edge)


@given(flows(), st.integers(0, 2))
def test_closed_scopes_and_rows_cover_all(drawn: Graph, depth: int) -> None:
    """At any depth a node has a row, lies in one closed scope, or in a later copy of one open repeat."""
    covered: Counter[int] = Counter()
    for row in rows_of(drawn, depth=depth, repeats=True):
        covered.update(row.nodes)
        if isinstance(row.scope, Scope):
            first = row.scope.copies[0][0] if row.scope.copies else None
            if not row.is_open:
                covered.update(node_ids(row.scope))
            elif first is not None:
                covered.update(range(node_ids(first).start, node_ids(row.scope).stop))

    assert Counter(range(len(drawn.nodes) - 1)) == covered
