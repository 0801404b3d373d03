"""Find chains of nodes that only reshape the same elements: view, transpose, expand.

What comes in: a `Graph`. What goes out: the nodes that continue the chain of the node before them.
"""

import re

from gradinspect.graph import Graph, Node, num_consumers

SHAPE_ONLY = frozenset({
    "Alias", "AsStrided", "Diagonal", "Expand", "Narrow", "Permute", "ReshapeAlias", "Select", "Slice", "Squeeze", "T",
    "Transpose", "UnsafeView", "Unfold", "Unsqueeze", "View",
})  # fmt: skip
ARROW = " → "  # the direction gradients flow


def shape_name(node: Node) -> str | None:
    """Return `View` for ViewBackward0, and None for a node that does more than change a shape."""
    match = re.fullmatch(r"(\w+)Backward\d+", node.name)
    return match[1] if match and match[1] in SHAPE_ONLY else None


def chain_links(graph: Graph) -> frozenset[int]:
    """Return the shape-only nodes whose only user is the preceding node, which in turn leads only to them.

    Roots and nodes with hooks never continue a chain, because they must stay visible.
    """
    users = num_consumers(graph)
    roots = {root.node for root in graph.roots}
    return frozenset(
        number
        for number in range(1, len(graph.nodes))
        if users[number] == 1
        and number not in roots
        and _is_plain(graph.nodes[number])
        and _is_plain(graph.nodes[number - 1])
        and [edge.next_node for edge in graph.nodes[number - 1].next_edges if edge is not None] == [number]
    )


def chain_title(nodes: list[Node], arrow: str = ARROW) -> str:
    """Name a chain by its links: `View → Transpose`."""
    return arrow.join(shape_name(node) or node.name for node in nodes)


def _is_plain(node: Node) -> bool:
    return not node.hooks and shape_name(node) is not None
