"""Two graphs compared line by line, without what differs between runs of one program.

What comes in: two graphs. What goes out: the lines in which they differ. A line says what a node is, where its
gradients go, and which module made it; not when, on which line of source, or in how many bytes.
"""

from difflib import unified_diff
from itertools import islice

from gradinspect.graph import Graph, Node
from gradinspect.units import escape_control, format_tensor

MAX_LINES = 40


def differing_lines(before: Graph, after: Graph) -> tuple[str, ...]:
    """Return the first lines of a unified diff of two graphs; empty if they are equal."""
    old, new = canonical_lines(before), canonical_lines(after)
    if old == new:
        return ()
    return tuple(islice(unified_diff(old, new, "golden", "now", lineterm="", n=1), MAX_LINES))


def canonical_lines(graph: Graph) -> list[str]:
    """Write a line per root and node. Edges are relative, so that a node more changes few lines."""
    roots = [f"root {graph.nodes[root.node].name} output {root.output_nr}" for root in graph.roots]
    return [*roots, *(_line(graph, number, node) for number, node in enumerate(graph.nodes))]


def _line(graph: Graph, number: int, node: Node) -> str:
    outputs = ", ".join("None" if info is None else format_tensor(info) for info in node.forward_outputs)
    edges = " ".join(
        "None" if edge is None else _target(graph, number, edge.next_node, edge.input_nr) for edge in node.next_edges
    )
    leaf = "" if node.leaf is None else f"{node.leaf.kind} {node.leaf.name} {format_tensor(node.leaf.info)}"
    module = "" if node.module is None else f"in {graph.modules[node.module].path or graph.model_name}"
    parts = (node.function or node.name, leaf or outputs, module, edges and f"-> {edges}")
    return escape_control("  ".join(filter(None, parts)))


def _target(graph: Graph, number: int, next_node: int, input_nr: int) -> str:
    leaf = graph.nodes[next_node].leaf
    name = f"+{next_node - number}" if leaf is None or leaf.name is None else leaf.name
    return f"{name}:{input_nr}" if input_nr else name
