"""How deep a graph is expanded unless the user says, and what is expanded around a node."""

import pytest
from factories import graph, leaf, op, residual_blocks, two_layers
from msgspec.structs import replace

from gradinspect.analyses.structure.expansion import (
    MAX_BOXES,
    MAX_BOXES_AT_ONCE,
    TOO_FEW_BOXES,
    Around,
    can_open,
    fits_unfolded,
    opens_to,
    readable_depth,
    readable_depth_of_rows,
    scopes_around,
)
from gradinspect.analyses.structure.folding import Scope, fold_graph
from gradinspect.analyses.structure.outline import OutlineBuilder, build_rows
from gradinspect.analyses.structure.outline_rows import Row
from gradinspect.graph import Graph, ModuleCall


def nested(num_blocks: int, num_ops: int) -> Graph:
    """Make a model of blocks of different classes, each with some nodes of its own."""
    calls = [ModuleCall(path="", class_name="Net")]
    calls += [ModuleCall(path=f"b{number}", class_name=f"B{number}", parent=0) for number in range(num_blocks)]
    last = num_blocks * num_ops - 1
    return graph(
        *(
            op(f"Op{place}Backward0", place + 1 if place < last else None,
               module=1 + place // num_ops)
            for place in range(last + 1)
        ),
        modules=tuple(calls),
    )  # fmt: skip


def test_rows_close_levels_until_fifty_are_left() -> None:
    """A tree with a row for each leaf closes the levels that its boxes alone would leave open."""
    folded = fold_graph(nested(6, 5))

    def is_long(limit: int, depth: int) -> bool:
        return limit < (8, 20, 120)[depth]

    assert readable_depth(folded) == 2
    assert readable_depth_of_rows(folded, is_long) == 1
    assert readable_depth_of_rows(folded, lambda limit, depth: False) == 2


def test_rows_close_no_level_that_leaves_next_to_nothing() -> None:
    """However many rows a chain of one block has, the block is open."""
    assert readable_depth_of_rows(fold_graph(nested(1, 30)), lambda limit, depth: True) == 2


def test_a_level_is_expanded_if_about_forty_boxes_stand() -> None:
    """Blocks stay closed if their contents would be too many, and are open if they are few."""
    assert readable_depth(fold_graph(nested(6, 12))) == 1
    assert readable_depth(fold_graph(nested(6, 5))) == 2
    assert MAX_BOXES == 40


def test_a_level_that_shows_next_to_nothing_is_not_the_last() -> None:
    """A model that is one closed box is opened, although more than forty boxes stand then, but not without end."""
    assert readable_depth(fold_graph(nested(1, 60))) == 2
    assert readable_depth(fold_graph(nested(1, 200))) == 1


def test_a_small_graph_is_all_open_and_an_empty_one_has_no_depth() -> None:
    """What fits is not folded; without modules there is no depth."""
    assert readable_depth(fold_graph(two_layers())) == 2
    assert readable_depth(fold_graph(graph(roots=()))) == 0
    assert readable_depth(fold_graph(residual_blocks(3))) >= 1


def shown_with(drawn: Graph, node_id: int) -> list[Row]:
    """List a folded graph, expanded just as far as `scopes_around` says for one node."""
    folded = fold_graph(drawn)
    around = list(scopes_around(folded, node_id))
    copies = {id(one.scope): one.copy for one in around}
    assert [one.level for one in around] == list(range(len(around)))

    return list(
        build_rows(
            OutlineBuilder(
                drawn, is_open=lambda scope, _: id(scope) in copies, copy_of=lambda scope, _: copies[id(scope)]
            ),
            folded,
        )
    )


@pytest.mark.parametrize("drawn", [residual_blocks(4), two_layers(), nested(2, 3)], ids=["repeat", "layers", "nested"])
def test_with_the_scopes_around_it_open_a_node_has_a_row(drawn: Graph) -> None:
    """Also a node in a later copy of a repeat, whose copy is then the one that is listed."""
    for node_id, node in enumerate(drawn.nodes):
        listed = {number for row in shown_with(drawn, node_id) for number in row.nodes}

        assert (node_id in listed) is (node.kind != "accumulate_grad")


def test_the_scopes_around_a_node() -> None:
    """Outermost first, with the copy that the node is in; none around what has a row anyway, or is in no row."""
    drawn = residual_blocks(4)
    folded = fold_graph(drawn)
    (model,) = folded.items
    assert isinstance(model, Scope)
    repeat = model.items[0]
    assert isinstance(repeat, Scope)

    assert list(scopes_around(folded, 7)) == [Around(model, 0, 0), Around(repeat, 1, 2)]
    assert [around.copy for node_id in range(12) for around in list(scopes_around(folded, node_id))[1:]] == [
        copy for copy in range(4) for _ in range(3)
    ]
    assert list(scopes_around(folded, 12)) == [Around(model, 0, 0)]
    assert list(scopes_around(folded, 13)) == []
    assert list(scopes_around(fold_graph(two_layers()), 0)) == []
    assert len(list(scopes_around(fold_graph(two_layers()), 3))) == 1


def test_a_repeat_of_few_nodes_is_easier_to_read_unfolded() -> None:
    """Twelve nodes in all copies are few; other scopes are never unfolded."""
    model = fold_graph(residual_blocks(4)).items[0]
    assert isinstance(model, Scope)
    repeat = model.items[0]
    assert isinstance(repeat, Scope)

    assert (repeat.num_nodes, fits_unfolded(repeat), fits_unfolded(model)) == (12, True, False)
    assert not fits_unfolded(replace(repeat, num_nodes=13))


def test_a_level_is_expanded_as_a_whole() -> None:
    """Scopes at that level are open, deeper ones are closed, and a chain of views always is."""
    scope = fold_graph(two_layers())

    assert [opens_to(2)(scope, level) for level in range(4)] == [True, True, False, False]
    assert not can_open(replace(scope, kind="shapes"))
    assert not opens_to(2)(replace(scope, kind="shapes"), 0)


@pytest.mark.parametrize(
    ("num_blocks", "num_ops", "depth"),
    [
        (MAX_BOXES, 2, 1),  # as many blocks as may stand; their contents would be more
        (20, 2, 2),  # contents that are as many as may stand
        (21, 2, 1),
        (TOO_FEW_BOXES - 1, 20, 2),  # next to nothing, and eighty would stand
        (TOO_FEW_BOXES - 1, 21, 1),
        (TOO_FEW_BOXES, 16, 1),  # enough, though eighty would stand
        (MAX_BOXES + 1, 2, 1),  # one closed box is next to nothing
        (MAX_BOXES_AT_ONCE, 2, 1),
        (MAX_BOXES_AT_ONCE + 1, 2, 0),
    ],
)
def test_how_many_boxes_are_too_many(num_blocks: int, num_ops: int, depth: int) -> None:
    """NOTE [About forty boxes], up to its bounds and one beyond."""
    assert readable_depth(fold_graph(nested(num_blocks, num_ops))) == depth


@pytest.mark.parametrize(("num_others", "depth"), [(35, 1), (36, 0)])
def test_the_later_copies_of_an_open_repeat_are_one_box(num_others: int, depth: int) -> None:
    """Beside the two nodes of its first copy; the last copy is none, as its way ends in a leaf."""
    names = [f"Op{number}Backward0" for number in range(num_others)] + ["SinBackward0", "CosBackward0"] * 20
    chain = graph(*(op(name, number + 1) for number, name in enumerate(names)), leaf("x", 3))

    assert readable_depth(fold_graph(chain)) == depth
