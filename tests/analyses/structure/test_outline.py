"""The rows of a graph: order, indentation, and that nothing is told twice or never."""

from collections import Counter
from collections.abc import Iterable

import pytest
from factories import graph, leaf, op, product_plus_two, residual_blocks, saved, two_layers
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from msgspec.structs import replace

from gradinspect.analyses.structure.folding import Scope, fold_graph, node_ids
from gradinspect.analyses.structure.outline import (
    OutlineBuilder,
    body_of,
    build_rows,
    leaf_uses,
    leaves_of,
    outline,
    unwrapped,
)
from gradinspect.analyses.structure.outline_rows import Guide, Row, guides_below, split_row
from gradinspect.graph import Frame, Graph, Hook, ModuleCall, Node, SavedValue, Storage


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


GUIDES: dict[Guide, str] = {"branch": "├", "last_branch": "└", "line": "│", "gap": " ", "scope": "┊"}


def written(rows: Iterable[Row]) -> str:
    """Write rows as text: indentation, the positions of edges from above, what it is, where its gradients go."""
    return "\n".join(_line(row) for row in rows)


def _line(row: Row) -> str:
    above = ",".join(f"[{link.position}]" for link in row.links)
    what = "-".join(f"#{node}" for node in row.nodes)
    if row.scope is not None:
        copy = "" if row.copy is None else f" copy {row.copy}"
        what = f"{'▾' if row.is_open else '▸'}{row.scope.kind} {node_ids(row.scope)}{copy}"
    call = "" if row.call is None else f" call {row.call}"
    places = ", ".join(f"{'' if link.position is None else f'[{link.position}]'}#{link.edge.next_node}"
                       for link in row.targets)  # fmt: skip
    end = " ◆" if row.ends_in_leaf else ""
    kind = {"leaf": "◆", "reference": "↗"}.get(row.kind, "")
    text = f"{above} {what}{call}{end}{kind}{f' → {places}' if places else ''}".strip()
    return "".join(GUIDES[guide] for guide in row.guides) + text


def test_branches_stand_beside_the_trunk() -> None:
    """What only one side leads to is a branch; leaves and what has a row elsewhere stand before the branches."""
    drawn = graph(
        op("AddBackward0", 1, 4),  # 0: a body, and what meets it
        op("AddmmBackward0", 8, 2, 3),  # 1: a bias, its input, and a weight
        op("MulBackward0", 4, 9),  # 2
        op("TBackward0", 10),  # 3
        op("CatBackward0", 5, 6, 7, 7),  # 4: three ways that end
        op("SinBackward0", 11), op("MulBackward0", 11, 9), op("CosBackward0"),
        leaf("bias", 3), leaf("scale", 3), leaf("weight", 3), leaf("x", 3),
    )  # fmt: skip

    assert written(rows_of(drawn)) == snapshot("""\
#0
├[0] #1
│├[0] ◆ → [0]#8
│├[2] #3 ◆ → [0]#10
│[1] #2
│├[0] ↗ → [0]#4
│└[1] ◆ → [1]#9
[1] #4
├[0] #5 ◆ → [0]#11
├[1] #6
│├[0] ◆ → [0]#11
│└[1] ◆ → [1]#9
[2],[3] #7\
""")


def test_the_contents_of_a_scope_are_indented_by_one_column() -> None:
    """Branches in it and around it have their own columns; what follows it stands in the column of its row."""
    assert written(rows_of(two_layers())) == snapshot("""\
#0
[0] ▾module range(1, 6)
┊▾module range(1, 3)
┊┊#1
┊┊├[0] ◆ → [0]#6
┊┊└[2] #2 ◆ → [0]#7
┊#3 call 2
┊[0] ▾module range(4, 6)
┊┊#4
┊┊├[0] ◆ → [0]#8
┊┊└[2] #5 ◆ → [0]#9\
""")
    assert written(rows_of(two_layers(), depth=0)) == snapshot("""\
#0
[0] ▸module range(1, 6)\
""")
    assert written(rows_of(residual_blocks(3), repeats=True)) == snapshot("""\
▾module range(0, 10)
┊▾repeat range(0, 9)
┊┊#0
┊┊├[1] #1
┊┊│[0] #2
┊┊│├[0] ↗ → [0]#3
┊┊│└[1] ◆ → [1]#10
┊┊[0] ↗ → [0]#3
┊#9 ◆ → [0]#10\
""")
    assert written(rows_of(residual_blocks(3), repeats=True, depth=1)) == snapshot("""\
▾module range(0, 10)
┊▸repeat range(0, 9)
┊[None] #9 ◆ → [0]#10\
""")


def test_any_copy_of_a_repeat_can_be_listed() -> None:
    """Its rows are those of that copy, and what follows it are the later copies."""
    drawn = residual_blocks(3)
    listed = [
        list(build_rows(OutlineBuilder(drawn, lambda *_: True, lambda *_, copy=copy: copy), fold_graph(drawn)))
        for copy in range(3)
    ]

    assert [[row.nodes for row in rows if row.nodes] for rows in listed] == [
        [(0,), (1,), (2,), (9,)],
        [(3,), (4,), (5,), (9,)],
        [(6,), (7,), (8,), (9,)],
    ]
    assert [[row.copy for row in rows if row.copy is not None] for rows in listed] == [[0], [1], [2]]
    assert written(listed[2]) == snapshot("""\
▾module range(0, 10)
┊▾repeat range(0, 9) copy 2
┊┊#6
┊┊├[1] #7
┊┊│[0] #8
┊┊│├[0] ↗ → [0]#9
┊┊│└[1] ◆ → [1]#10
┊┊[0] ↗ → [0]#9
┊#9 ◆ → [0]#10\
""")


def test_after_branches_a_reference_leads_to_what_follows_the_scope() -> None:
    """A scope's last node, under which something stands, says that its gradient goes on below."""
    calls = (ModuleCall(path="a", class_name="A"),)
    drawn = graph(
        op("MulBackward0", 1, 2, module=0), op("SinBackward0", 4, module=0), op("CosBackward0", 3, module=0),
        op("ExpBackward0", 4), leaf("x", 3), modules=calls,
    )  # fmt: skip
    twice = graph(
        op("MulBackward0", 1, 2, 2, module=0), op("SinBackward0", 3, module=0), op("ExpBackward0"), leaf("x", 3),
        modules=calls,
    )  # fmt: skip
    straight = graph(
        op("MulBackward0", 1, 2, module=0), op("TBackward0", 3, module=0), op("ExpBackward0", 3), leaf("x", 3),
        modules=calls,
    )  # fmt: skip

    assert written(rows_of(drawn)) == snapshot("""\
▾module range(0, 3)
┊#0
┊├[0] #1 ◆ → [0]#4
┊[1] #2
#3 ◆ → [0]#4\
""")
    assert written(rows_of(twice)) == snapshot("""\
▾module range(0, 2)
┊#0
┊├[0] #1 ◆ → [0]#3
┊[1],[2] ↗ → [1]#2
#2\
""")
    assert written(rows_of(straight)) == snapshot("""\
▾module range(0, 2)
┊#0
┊└[0] #1 ◆ → [0]#3
#2 ◆ → [0]#3\
""")


def plain_chain(length: int, **last: object) -> Graph:
    """Two ways, of which one is a chain of views that ends in a leaf; its second node has what is asked."""
    nodes = [op("ViewBackward0", place + 1) for place in range(2, 2 + length)]
    nodes[1] = replace(op("TBackward0", 4), **last)
    lines = (Frame(file="a.py", line=1), Frame(file="a.py", line=2))
    return graph(
        op("MulBackward0", 1, 2),
        op("ExpBackward0"),
        *nodes,
        leaf("w", 3),
        frames=lines,
        storages=(Storage(num_bytes=8),),
    )


@pytest.mark.parametrize(
    ("length", "marks", "together"),
    [
        (2, {}, True),
        (3, {}, True),
        (4, {}, False),  # more than a row holds
        (2, {"hooks": (Hook(kind="pre"),)}, False),
        (2, {"function": "Mine"}, False),
        (2, {"saved": (saved("_saved_self", 2, storage=0),)}, False),
        (2, {"saved": (SavedValue(name="_saved_self", kind="tensor", status="freed"),)}, False),
        (2, {"saved": (SavedValue(name="_saved_dim", kind="int", value=1),)}, True),
        (2, {"frame": 0}, False),  # another line than the first node's
    ],
)
def test_a_short_chain_to_a_leaf_shares_a_row(length: int, marks: dict[str, object], together: bool) -> None:
    """If its names say all there is to say of its nodes."""
    rows = rows_of(plain_chain(length, **marks))
    chain = tuple(range(2, 2 + length))

    assert (chain in [row.nodes for row in rows]) is together


def test_a_chain_with_a_root_in_it_does_not_share_a_row() -> None:
    """Where backward starts is to be seen."""
    drawn = plain_chain(2)
    both = replace(drawn, roots=(*drawn.roots, replace(drawn.roots[0], node=3)))

    assert (2, 3) in [row.nodes for row in rows_of(drawn)]
    assert (2, 3) not in [row.nodes for row in rows_of(both)]


def test_a_chain_of_one_line_may_be_of_any_line() -> None:
    """A node without a line, or of the line of the first, is plain."""
    drawn = plain_chain(2, frame=1)
    first = replace(drawn.nodes[2], frame=1)
    same = replace(drawn, nodes=(*drawn.nodes[:2], first, *drawn.nodes[3:]))

    assert (2, 3) in [row.nodes for row in rows_of(same)]
    assert (2, 3) not in [row.nodes for row in rows_of(drawn)]


def test_a_call_of_one_node_is_a_row_of_that_node() -> None:
    """The row says which call; a call of a repeat or of a call is a scope."""
    calls = (ModuleCall(path="a", class_name="A"), ModuleCall(path="a.b", class_name="B", parent=0))
    drawn = graph(op("SinBackward0", 1, module=1), op("ExpBackward0", 2, module=0), op("CosBackward0"), modules=calls)
    alone = graph(op("SinBackward0", 1, module=1), op("CosBackward0"), modules=calls)
    repeat = Scope(kind="repeat", items=(0,), copies=((1,),), num_nodes=2, held_bytes=0)
    around = Scope(kind="module", module=0, items=(repeat,), num_nodes=2, held_bytes=0)
    (outer, _), single = fold_graph(drawn).items, Scope(kind="module", module=1, items=(0,), num_nodes=1, held_bytes=0)

    assert [row.call for row in rows_of(drawn)] == [None, 1, None, None]
    assert [(row.kind, row.call) for row in rows_of(alone)] == [("scope", None), ("node", 1), ("node", None)]
    assert [unwrapped(item) for item in (7, single, outer, around, repeat)] == [
        (7, None), (0, 1), (outer, None), (around, None), (repeat, None),
    ]  # fmt: skip


def test_the_body_of_a_repeat_of_calls_is_that_of_one_call() -> None:
    """The copies of another repeat are its own items."""
    calls = [Scope(kind="module", module=at, items=(at, at + 10), num_nodes=2, held_bytes=0) for at in range(4)]
    of_calls = Scope(kind="repeat", items=(calls[0],), copies=((calls[1],), (calls[2],)), num_nodes=6, held_bytes=0)
    of_pairs = Scope(kind="repeat", items=(calls[0], 5), copies=((calls[1], 6),), num_nodes=6, held_bytes=0)
    of_repeats = Scope(kind="repeat", items=(of_pairs,), copies=((of_pairs,),), num_nodes=6, held_bytes=0)

    assert [body_of(of_calls, copy) for copy in range(3)] == [(0, 10), (1, 11), (2, 12)]
    assert [body_of(of_pairs), body_of(of_pairs, 1)] == [(calls[0], 5), (calls[1], 6)]
    assert body_of(of_repeats) == (of_pairs,)
    assert body_of(Scope(kind="module", items=(calls[0],), num_nodes=2, held_bytes=0)) == (calls[0],)


def test_a_row_of_several_nodes_can_be_split() -> None:
    """Each node has a row in the same column, and its end one under them."""
    row = next(row for row in rows_of(plain_chain(2)) if len(row.nodes) == 2)

    assert written([row]) == snapshot("├[1] #2-#3 ◆ → [0]#4")
    assert written(split_row(row)) == snapshot("""\
├[1] #2
│#3
│└◆ → [0]#4\
""")
    assert [guides_below(Row(kind="node", guides=(guide,))) for guide in GUIDES] == [
        ("line",), ("gap",), ("line",), ("gap",), ("scope",),
    ]  # fmt: skip


def test_the_gradients_of_a_leaf_and_a_node_that_are_roots_are_listed() -> None:
    """Leaves first, in order; a node that nothing leads to is listed as well."""
    drawn = graph(
        op("SinBackward0", 3), op("CosBackward0", 3), op("ExpBackward0", 3), leaf("x", 3), leaf("y", 3), roots=(4, 0, 3)
    )

    assert written(rows_of(drawn)) == snapshot("""\
◆ → #3
◆ → #4
#0 ◆ → [0]#3
#1 ◆ → [0]#3
#2 ◆ → [0]#3\
""")
