"""What a reader opens and closes, and which rows he sees then."""

from factories import graph, leaf, op, product_plus_two, residual_blocks, two_layers
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot
from msgspec.structs import replace
from strategies import examples, graphs

from gradinspect.analyses.structure.folding import Scope
from gradinspect.explorer.browsing import Browser
from gradinspect.graph import Edge, Graph, ModuleCall
from gradinspect.renderers.terminal.trees.tree import TreeOptions, TreePage

MANY = 100_000


def screen(browser: Browser) -> str:
    """Print all rows, the one with the cursor marked."""
    page = TreePage(browser.graph, TreeOptions(width=70, max_rows=None))
    rows = browser.rows(0, MANY)
    lines = (f"{'>' if place == browser.cursor else ' '} {page.line(row).plain}" for place, row in enumerate(rows))
    return "\n" + "\n".join(line.rstrip() for line in lines) + "\n"


def test_opening_and_closing() -> None:
    """A scope opens in place, and closes again from its own row."""
    browser = Browser(two_layers())
    closed = screen(browser)
    browser.move_to(1)

    assert browser.open()
    assert not browser.open()
    assert screen(browser) == snapshot("""\

  root: #0 NllLossBackward0  f32[]  weight: None             train.py:8
> ▾ #1–5  model  Sequential  5 nodes                  480 B
  ┊ ▸ #1–2  model.2  Linear  2 nodes                  320 B
  ┊ #3 ReluBackward0  f32[4, 20]  model.1 ReLU               model.py:21
  ┊ ▸ #4–5  model.0  Linear  2 nodes                  160 B
""")

    browser.move(2)

    assert browser.move_out()
    assert browser.close()
    assert not browser.close()
    browser.move_to(0)
    assert screen(browser) == closed


def test_as_much_is_open_as_is_easy_to_read() -> None:
    """Without a depth it opens as deep as a picture does; a small graph is open."""
    assert len(Browser(two_layers()).rows(0, MANY)) == 2
    assert not any(row.scope and not row.is_open for row in Browser(two_layers(), None).rows(0, MANY))


def test_another_copy_of_a_repeat() -> None:
    """The repeat tells another copy, opened like the one before it, with the cursor at the same place in it."""
    browser = Browser(residual_blocks(4))
    browser.open_all()
    browser.move_to(3)

    assert screen(browser) == snapshot("""\

  ▾ #0–12  model  Net  13 nodes
  ┊ ▾ 1 of 4 #0–2  h.3  Block  3 nodes each
  ┊ ┊ root: #0 AddBackward0  f32[2, 3]
> ┊ ┊ ├─ other: #1 ExpBackward0  f32[2, 3]
  ┊ ┊ │  #2 MulBackward0  f32[2, 3]
  ┊ ┊ │  ├─ self: → #3 AddBackward0
  ┊ ┊ │  └─ other: ◆ shared  f32[3]  used ×5
  ┊ ┊ self: → #3 AddBackward0
  ┊ #12 EmbeddingBackward0 → ◆ shared  f32[3]  used ×5
""")
    assert browser.shift_copy(2)
    assert screen(browser) == snapshot("""\

  ▾ #0–12  model  Net  13 nodes
  ┊ root: ▾ 3 of 4 #6–8  h.1  Block  3 nodes each
  ┊ ┊ #6 AddBackward0  f32[2, 3]
> ┊ ┊ ├─ other: #7 ExpBackward0  f32[2, 3]
  ┊ ┊ │  #8 MulBackward0  f32[2, 3]
  ┊ ┊ │  ├─ self: → #9 AddBackward0
  ┊ ┊ │  └─ other: ◆ shared  f32[3]  used ×5
  ┊ ┊ self: → #9 AddBackward0
  ┊ #12 EmbeddingBackward0 → ◆ shared  f32[3]  used ×5
""")
    assert browser.shift_copy(100)
    assert browser.item == 10
    assert not browser.shift_copy(1)
    assert not Browser(two_layers()).shift_copy(1)


def test_closing_everything_keeps_to_what_the_cursor_is_in() -> None:
    """The cursor goes to the closed scope that holds the row it was at."""
    browser = Browser(residual_blocks(4))
    browser.reveal(7)
    browser.close_all()

    assert isinstance(browser.item, Scope)
    assert browser.cursor == 0


def test_a_leaf_is_found_where_it_is_used() -> None:
    """Where it is on the screen already, at the use that is nearest; else at its first use."""
    browser = Browser(residual_blocks(4))
    browser.reveal(13)

    assert screen(browser).count(">") == 1
    assert browser.row is not None
    assert browser.row.targets[0].edge.next_node == 13

    beside = Browser(product_plus_two())
    beside.move_to(2)
    beside.reveal(2)

    assert beside.cursor == 2


def test_modules_around_a_single_node_open_as_far_as_they_have_rows() -> None:
    """The innermost has none: its node stands for it."""
    calls = (ModuleCall(path="body", class_name="Sequential"), ModuleCall(path="body.0", class_name="ReLU", parent=0))
    browser = Browser(graph(op("ReluBackward0", 1, module=1), leaf("x", 2), modules=calls))
    browser.reveal(0)

    assert browser.row is not None
    assert browser.row.nodes == (0,)


def test_an_empty_graph_has_no_row() -> None:
    """Nothing moves, and nothing opens."""
    browser = Browser(graph(roots=()))
    browser.move(3)
    browser.move_to_end()
    browser.open_all()

    assert browser.row is None
    assert browser.item is None
    assert not (browser.open())
    assert not (browser.close())
    assert not (browser.move_out())
    assert not (browser.shift_copy(1))


def with_leaves_last(drawn: Graph) -> Graph:
    """Number the nodes as a capture does: see NOTE [Topological ids] in `gradinspect.graph`."""
    order = sorted(range(len(drawn.nodes)), key=lambda node_id: drawn.nodes[node_id].kind == "accumulate_grad")
    numbers = {node_id: number for number, node_id in enumerate(order)}

    def numbered(edge: Edge | None) -> Edge | None:
        return None if edge is None else replace(edge, next_node=numbers[edge.next_node])

    nodes = [drawn.nodes[node_id] for node_id in order]
    return replace(
        drawn,
        nodes=tuple(replace(node, next_edges=tuple(map(numbered, node.next_edges))) for node in nodes),
        roots=tuple(replace(root, node=numbers[root.node]) for root in drawn.roots),
    )


@settings(max_examples=examples(40), deadline=None)  # it visits every node of each graph
@given(graphs().map(with_leaves_last), st.data())
def test_each_node_can_be_reached(drawn: Graph, data: st.DataObject) -> None:
    """Whatever is open, going to a node ends in a row that tells it, and going back where one was before."""
    browser = Browser(drawn, data.draw(st.integers(0, 3)))
    browser.move_to(data.draw(st.integers(0, 30)))
    told = {root.node for root in drawn.roots} | {
        edge.next_node for node in drawn.nodes for edge in node.next_edges if edge is not None
    }
    for node_id in told:
        here = browser.here()
        browser.reveal(node_id)
        row = browser.row

        assert row is not None
        assert node_id in (*row.nodes, *(link.edge.next_node for link in row.targets))
        if here is not None:
            browser.go(here)
            assert browser.here() == here
