"""Nodes that pass on next to nothing of the gradient they got: rounding errors of a softmax, saturated activations."""

import math
from collections.abc import Iterator, Sequence

from gradinspect.analyses.gradients.observed import Finding, gradients_of
from gradinspect.graph import GradientStats, Graph

NEXT_TO_NOTHING = 1e-6  # of the norm that came; the rounding error of float32 is a tenth of that
# log_softmax is not among them: in cross entropy a small gradient is a good prediction
SQUASHING = ("SoftmaxBackward", "SigmoidBackward", "TanhBackward", "ErfBackward")


def shrunk_gradients(graph: Graph) -> Iterator[Finding]:
    """Find squashing nodes through which a gradient all but dies, with the parameters that get it from nowhere else.

    The text of each is what it got and what it passed on.
    """
    for ran in gradients_of(graph).nodes:
        if not graph.nodes[ran.node].name.startswith(SQUASHING):
            continue
        came, went = _norm(ran.incoming), _norm(ran.outgoing)
        if not 0 < went < NEXT_TO_NOTHING * came:
            continue
        starved = _only_through(graph, ran.node)
        if starved:
            text = f"a gradient of norm {came:.1e} and passed on {went:.1e}"
            yield Finding(kind="killed", text=text, node=ran.node, starved=starved)


def _norm(stats: Sequence[GradientStats | None]) -> float:
    return math.hypot(*(item.norm for item in stats if item is not None))


def _only_through(graph: Graph, node_id: int) -> tuple[str, ...]:
    """Name the leaves to which no path leads but through one node."""
    behind = _reached(graph, [node_id], avoided=None)
    around = _reached(graph, [root.node for root in graph.roots], avoided=node_id)
    leaves = ((number, node.leaf) for number, node in enumerate(graph.nodes))
    return tuple(
        leaf.name or f"#{number}"
        for number, leaf in leaves
        if leaf is not None and number in behind and number not in around
    )


def _reached(graph: Graph, starts: Sequence[int], avoided: int | None) -> set[int]:
    seen = {start for start in starts if start != avoided}
    todo = list(seen)
    for number in todo:
        for edge in graph.nodes[number].next_edges:
            if edge is not None and edge.next_node not in seen and edge.next_node != avoided:
                seen.add(edge.next_node)
                todo.append(edge.next_node)
    return seen
