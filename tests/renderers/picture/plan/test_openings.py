"""In which order modules are opened."""

from factories import graph, leaf, op, residual_blocks
from hypothesis import given
from strategies import graphs

from gradinspect.analyses.structure.folding import fold_graph
from gradinspect.graph import Graph, ModuleCall
from gradinspect.renderers.picture.plan.drawing import plan_opened
from gradinspect.renderers.picture.plan.openings import hidden_share, opens, steps
from gradinspect.renderers.picture.plan.parts import DrawOptions, PartChooser


def nested() -> Graph:
    """Make a model of two different blocks, of which the second is only a wrapper around another."""
    modules = (
        ModuleCall(path="", class_name="Net"),
        ModuleCall(path="a", class_name="A", parent=0),
        ModuleCall(path="b", class_name="B", parent=0),
        ModuleCall(path="b.c", class_name="C", parent=2),
    )
    ops = [op(f"Op{place}Backward0", place + 1, module=module) for place, module in enumerate((1, 1, 3, 3, 3))]
    return graph(*ops, leaf("w", 3), modules=modules)


@given(graphs())
def test_each_scope_is_opened_once_and_after_the_one_around_it(whole: Graph) -> None:
    """And the boxes that each step adds are counted."""
    folded, chooser = fold_graph(whole), PartChooser(whole, DrawOptions())
    opened: frozenset[tuple[int, int, int]] = frozenset()
    num_boxes = len(plan_opened(chooser, folded, opens(opened)).boxes)
    for step in steps(whole, folded, DrawOptions()):
        assert not opened & step.places
        assert step.parents <= opened
        opened |= step.places
        num_boxes += step.num_boxes
        assert num_boxes == len(plan_opened(chooser, folded, opens(opened)).boxes)


def test_a_scope_with_one_scope_in_it_is_opened_with_it() -> None:
    """A frame around one closed box shows no more than the box."""
    found = [len(step.places) for step in steps(nested(), fold_graph(nested()), DrawOptions())]

    assert found == [1, 2, 1]


def test_the_larger_one_comes_first_and_what_changed_before_it() -> None:
    """By bytes, else by nodes; in a comparison by the number of changes, leaves included."""
    whole = nested()
    statuses = ("changed", *[""] * 5)
    by_nodes = [min(step.places) for step in steps(whole, fold_graph(whole), DrawOptions())]
    by_change = [min(step.places) for step in steps(whole, fold_graph(whole), DrawOptions(statuses=statuses))]

    assert by_nodes == [(0, 5, 0), (2, 5, 1), (0, 2, 1)]
    assert by_change == [(0, 5, 0), (0, 2, 1), (2, 5, 1)]


def test_how_much_one_closed_box_hides() -> None:
    """All copies of the repeat that it is in count; what is open or drawn itself hides nothing."""
    whole = nested()
    folded, chooser = fold_graph(whole), PartChooser(whole, DrawOptions())
    changed = DrawOptions(statuses=("changed", "", "changed", "changed", "", ""))
    order = [step.places for step in steps(whole, folded, changed)]

    def hidden(num_open: int) -> float:
        places = frozenset(place for step in order[:num_open] for place in step)
        return hidden_share(whole, changed, plan_opened(chooser, folded, opens(places)).parts)

    assert [hidden(num_open) for num_open in range(4)] == [1.0, 2 / 3, 1 / 3, 0.0]
    assert hidden_share(whole, DrawOptions(), plan_opened(chooser, folded, opens(frozenset())).parts) == 0.0


def test_equal_blocks_are_opened_together() -> None:
    """Equal modules look equal."""
    whole = residual_blocks(3)

    assert max(len(step.places) for step in steps(whole, fold_graph(whole, repeats=False), DrawOptions())) == 3
