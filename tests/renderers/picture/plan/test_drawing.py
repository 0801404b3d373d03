"""Which boxes and arrows a picture has."""

from collections import Counter

import pytest
from factories import graph, leaf, op, product_plus_two
from hypothesis import given
from strategies import graphs

from gradinspect.graph import Graph, ModuleCall
from gradinspect.renderers.picture.plan.drawing import Drawing, plan_drawing
from gradinspect.renderers.picture.plan.parts import Box, DrawOptions, ScopeEnd, ScopeStart


def chain(*names: str) -> Graph:
    """Make a chain of ops that ends in a leaf."""
    return graph(*(op(name, place + 1) for place, name in enumerate(names)), leaf("w", 2, 3))


def layers(num_layers: int) -> Graph:
    """Make equal layers of three nodes each, a module call each, in one model."""
    nodes = []
    for layer in range(num_layers):
        first = 3 * layer
        nodes += [
            op("ReluBackward0", first + 1, module=1 + layer),
            op("MulBackward0", first + 2, 3 * num_layers, module=1 + layer),
        ]
        nodes.append(op("TanhBackward0", min(first + 3, 3 * num_layers), module=1 + layer))
    modules = [ModuleCall(path="", class_name="Model")]
    modules += [ModuleCall(path=f"h.{layer}", class_name="Block", parent=0) for layer in range(num_layers)]
    return graph(*nodes, leaf("w", 2, 3), modules=tuple(modules))


def kinds(drawing: Drawing) -> list[str]:
    """List the kinds of boxes in order."""
    return [box.kind for box in drawing.boxes]


def test_full_draws_each_node_once() -> None:
    """Without folding each node but the leaves has one box, and each edge between them one arrow."""
    drawing = plan_drawing(layers(5), DrawOptions(full=True))

    assert list(range(15)) == [box.ids.start for box in drawing.boxes]
    assert {"node"} == set(kinds(drawing))
    assert [(place, place + 1) for place in range(14)] == [(arrow.tail, arrow.head) for arrow in drawing.arrows]
    assert drawing.notes == ()


def test_repeat_is_drawn_once() -> None:
    """Of equal layers the first is drawn, and one box stands for all but the last, which ends in a leaf."""
    drawing = plan_drawing(layers(6), DrawOptions())

    assert kinds(drawing) == ["node", "node", "node", "copies", "node", "node", "node"]
    assert range(3, 15) == drawing.boxes[3].ids


def test_small_repeat_is_not_folded() -> None:
    """A repeat of few nodes is drawn in full: a fold would be as large."""
    drawing = plan_drawing(layers(3), DrawOptions())

    assert {"node"} == set(kinds(drawing))


def test_depth_closes_deeper_scopes() -> None:
    """A scope deeper than asked for is one closed box."""
    drawing = plan_drawing(layers(6), DrawOptions(depth=0))

    assert kinds(drawing) == ["closed"]
    assert range(18) == drawing.boxes[0].ids


def test_too_many_boxes_fold_first() -> None:
    """A full picture that is too large is folded, and says so."""
    drawing = plan_drawing(layers(50), DrawOptions(full=True, max_boxes=100))

    assert kinds(drawing) == ["node", "node", "node", "copies", "node", "node", "node"]
    assert drawing.notes == ("repeats folded: limit is 100 boxes",)


def test_still_too_many_boxes_close_scopes() -> None:
    """A picture that is too large at every depth is drawn less deep, and says how deep."""
    drawing = plan_drawing(layers(6), DrawOptions(max_boxes=2))

    assert kinds(drawing) == ["closed", "closed"]
    assert drawing.notes == ("folded to depth 1: limit is 2 boxes",)


def test_what_cannot_be_folded_is_cut() -> None:
    """Where nothing folds, both ends are drawn, and one box tells how many nodes are not."""
    names = [f"Op{number}" for number in range(100)]
    drawing = plan_drawing(chain(*names), DrawOptions(max_boxes=9))

    assert [*["node"] * 6, "cut", *["node"] * 2] == kinds(drawing)
    assert drawing.notes == ("92 nodes not drawn: limit is 9 boxes",)


def test_lone_node_of_a_call_has_no_frame() -> None:
    """A module call of one node is that node's box, with the call's name, not a frame around it."""
    modules = (ModuleCall(path="act", class_name="ReLU"),)
    drawing = plan_drawing(graph(op("ReluBackward0", 1, module=0), leaf("x", 2, 3), modules=modules), DrawOptions())

    (box,) = drawing.parts
    assert isinstance(box, Box)
    assert box.scope is not None
    assert box.scope.module == 0


def test_parallel_edges_stay_two_arrows() -> None:
    """`y * y` has two arrows to one node."""
    drawing = plan_drawing(graph(op("MulBackward0", 1, 1), op("ExpBackward0", 2), leaf("x", 2, 3)), DrawOptions())

    assert [(arrow.tail, arrow.head, arrow.position) for arrow in drawing.arrows] == [(0, 1, 0), (0, 1, 1)]


def test_arrow_out_of_a_scope_ends_below_it() -> None:
    """What follows a module is drawn below all of the module, the leaves in it included."""
    modules = (ModuleCall(path="fc", class_name="Linear"),)
    nodes = (
        op("AddmmBackward0", 1, 2, module=0), op("TBackward0", 3, module=0), op("ReluBackward0", 4),
        leaf("fc.weight", 2, 3), leaf("x", 2, 3),
    )  # fmt: skip
    drawing = plan_drawing(graph(*nodes, modules=modules), DrawOptions())

    assert [(arrow.head, arrow.length) for arrow in drawing.arrows] == [(1, 1), (2, 3)]


@pytest.mark.slow
@given(graphs())
@pytest.mark.parametrize(
    "options",
    [
        DrawOptions(),
        DrawOptions(full=True),
        DrawOptions(depth=0),
        DrawOptions(depth=1),
        DrawOptions(max_boxes=1),
        DrawOptions(fold_shapes=True),
    ],
    ids=repr,
)
def test_nothing_is_lost_unsaid(options: DrawOptions, graph: Graph) -> None:
    """Each node is in one box, each edge between two boxes is in one arrow, and frames close in order."""
    drawing = plan_drawing(graph, options)
    ops = [node_id for node_id, node in enumerate(graph.nodes) if node.kind != "accumulate_grad"]

    assert ops == [node_id for box in drawing.boxes for node_id in box.ids if node_id in ops]
    expected: Counter[tuple[int, int]] = Counter()
    for node_id in ops:
        tail = drawing.box_of[node_id]
        heads = (
            drawing.box_of[edge.next_node] for edge in graph.nodes[node_id].next_edges if edge and edge.next_node in ops
        )
        expected.update((tail, head) for head in heads if head != tail)
    found: Counter[tuple[int, int]] = Counter()
    for arrow in drawing.arrows:
        found[arrow.tail, arrow.head] += arrow.num_edges
    assert expected == found
    assert all(arrow.tail < arrow.head for arrow in drawing.arrows)
    starts = sum(isinstance(part, ScopeStart) for part in drawing.parts)
    assert starts == sum(isinstance(part, ScopeEnd) for part in drawing.parts)


def test_cut_of_a_tiny_graph_keeps_a_box() -> None:
    """Even a budget of one box gives a picture."""
    drawing = plan_drawing(product_plus_two(), DrawOptions(max_boxes=1))

    assert kinds(drawing) == ["cut"]
