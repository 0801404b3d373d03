"""What is said of a node that is in both graphs and differs."""

from factories import graph, leaf, op, saved

from gradinspect.analyses.diff.comparison import diff_graphs
from gradinspect.analyses.diff.records import Detail
from gradinspect.graph import Graph, Hook, ModuleCall, SavedValue, Storage


def with_saved(*values: SavedValue) -> Graph:
    """Make a product that has saved some values."""
    return graph(
        op("MulBackward0", 1, saved=values), leaf("w", 3), storages=(Storage(num_bytes=16), Storage(num_bytes=32))
    )


def details(before: Graph, after: Graph) -> list[Detail]:
    """List all that differs between the nodes of two graphs."""
    return [detail for row in diff_graphs(before, after).rows for detail in row.details]


def test_hooks_that_come_and_go() -> None:
    """Either way."""
    one = graph(op("SinBackward0", 1), leaf("w", 3))
    other = graph(op("SinBackward0", 1, hooks=(Hook(kind="post", name="clip"),)), leaf("w", 3))

    assert details(one, other) == [Detail("hooks", after="post clip")]
    assert details(other, one) == [Detail("hooks", before="post clip")]


def test_only_the_saved_values_that_differ_are_named() -> None:
    """Tensors by what they are, numbers by their value."""
    dim = SavedValue(name="_saved_dim", kind="int", value=1)
    one = with_saved(saved("_saved_self", 4, storage=0), saved("_saved_other", 4, storage=1), dim)
    other = with_saved(
        saved("_saved_self", 4, storage=0),
        saved("_saved_other", 8, storage=1),
        SavedValue(name="_saved_dim", kind="int", value=2),
    )

    assert details(one, other) == [Detail("saved", "other", "f32[4]", "f32[8]"), Detail("saved", "dim", "1", "2")]


def test_an_empty_text_that_only_one_has_saved() -> None:
    """It is named, though there is nothing to show."""
    value = SavedValue(name="_saved_rounding_mode", kind="str", value="")

    assert details(with_saved(), with_saved(value)) == [Detail("saved", "rounding_mode")]


def test_a_node_that_has_left_its_module() -> None:
    """The module that it was in is named, and nothing beside it."""
    modules = (ModuleCall(path="", class_name="Net"), ModuleCall(path="fc", class_name="Linear", parent=0))
    one, other = (
        graph(op("SinBackward0", 1, module=module), op("ExpBackward0", 2, module=1), leaf("w", 3), modules=modules)
        for module in (1, None)
    )

    assert details(one, other) == [Detail("module", before="fc")]
    assert details(other, one) == [Detail("module", after="fc")]
