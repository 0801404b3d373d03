"""Edges between devices, and where they are shown."""

from factories import graph, leaf, op
from msgspec.structs import replace

from gradinspect.analyses.structure.devices import Crossing, crossings, ends_of
from gradinspect.graph import Graph, Node
from gradinspect.renderers.html.page import render_html
from gradinspect.renderers.picture.dot.document import render_dot
from gradinspect.renderers.terminal.trees.tree import render_tree


def on(device: str, node: Node) -> Node:
    """Put what a node is about on a device."""
    if node.leaf is not None:
        return replace(node, leaf=replace(node.leaf, info=replace(node.leaf.info, device=device)))
    return replace(node, forward_outputs=tuple(info and replace(info, device=device) for info in node.forward_outputs))


def on_two_devices() -> Graph:
    """Make a graph whose gradients go from one device to another, and from there to a leaf on the CPU."""
    first, second = on("cuda:1", op("ToCopyBackward0", 1)), on("cuda:0", op("MulBackward0", 2, None))
    return graph(first, second, leaf("w", 2, 3))


def test_edges_between_devices_are_found_in_the_direction_of_gradients() -> None:
    """A graph on one device has none, whatever the device is."""
    found = crossings(on_two_devices())
    alone = graph(on("cuda:1", op("MulBackward0", 1)), on("cuda:1", leaf("w", 2, 3)))

    assert found == {0: (Crossing(0, 1, "cuda:1", "cuda:0"),), 1: (Crossing(1, 2, "cuda:0", "cpu"),)}
    assert ends_of((*found[0], *found[1], *found[0])) == ("cuda:0", "cpu")
    assert crossings(alone) == {}


def test_a_node_without_a_tensor_is_on_no_device() -> None:
    """Nothing is said of its edges."""
    unknown = replace(op("Unknown", 2), forward_outputs=(None,))

    assert crossings(graph(on("cuda:0", op("MulBackward0", 1)), unknown, leaf("w", 2, 3))) == {}


def test_each_view_names_the_device_that_gradients_go_to() -> None:
    """The tree, the picture and the page; names from a capture file are data."""
    crossed = on_two_devices()
    tree = "\n".join(line.plain for line in render_tree(crossed))

    assert "ToCopyBackward0  f32[2, 3] cuda:1  to cuda:0" in tree
    assert "cuda:1 → cuda:0" in render_dot(crossed)
    assert "cuda:1 \\u2192 cuda:0" in render_html(crossed)


def test_a_graph_on_one_device_looks_as_before() -> None:
    """Nothing is added."""
    alone = graph(op("ToCopyBackward0", 1), op("MulBackward0", 2, None), leaf("w", 2, 3))

    assert "  to " not in "\n".join(line.plain for line in render_tree(alone))
    assert "cpu →" not in render_dot(alone)
