"""Which module of one graph is which one of another."""

from factories import graph, leaf, op

from gradinspect.analyses.diff.comparison import diff_graphs
from gradinspect.analyses.diff.records import GraphDiff
from gradinspect.graph import Graph, ModuleCall


def layers(**widths: int) -> Graph:
    """Make a chain of layers, each a module with one node; the last runs first."""
    paths = list(widths)
    nodes = [
        op("AddmmBackward0", place + 1, shape=(2, width), module=place + 1)
        for place, width in enumerate(widths.values())
    ]
    calls = (ModuleCall(path=path, class_name="Linear", parent=0) for path in paths)
    return graph(*nodes, leaf("x", 2), modules=(ModuleCall(path="", class_name="Net"), *calls))


def changes(diff: GraphDiff) -> set[tuple[str, str, str]]:
    """Return the main parts of rows and of changed modules."""
    return {(row.kind, row.module, row.what) for row in diff.rows} | {
        (module.kind, module.before, module.after) for module in diff.module_changes
    }


def test_a_layer_that_takes_the_name_of_another() -> None:
    """What is inside says which layer it is, before its name does."""
    diff = diff_graphs(layers(b=5, a=4), layers(c=5, b=4, a=9))

    assert changes(diff) == {
        ("added", "a", "Linear"), ("renamed", "b", "c"), ("renamed", "a", "b"), ("added", "", "a"),
    }  # fmt: skip


def test_fewer_equal_layers_under_other_names() -> None:
    """As many as there are now have other names."""
    diff = diff_graphs(layers(b=4, a=4), layers(x=4))

    assert changes(diff) == {("removed", "b", "Linear"), ("removed", "b", ""), ("renamed", "a", "x")}


def test_the_only_module_of_a_class_is_the_same_under_another_name() -> None:
    """Also if what is inside differs."""
    diff = diff_graphs(layers(a=4), layers(z=9))

    assert changes(diff) == {("changed", "z", "AddmmBackward0"), ("renamed", "a", "z")}
