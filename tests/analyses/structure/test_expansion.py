"""How deep a graph is expanded, unless the user says."""

from factories import graph, op, residual_blocks, two_layers

from gradinspect.analyses.structure.expansion import MAX_BOXES, readable_depth
from gradinspect.analyses.structure.folding import fold_graph
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
