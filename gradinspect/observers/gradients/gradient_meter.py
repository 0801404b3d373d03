"""Measure one backward call through node hooks: statistics of the gradients that reach and leave each node.

NOTE [Measuring without changing]
Hooks return nothing, so the engine continues with the same gradients. Statistics are computed from detached tensors, so
that no node is added under create_graph=True, and outside the modes of the program. They are fetched once, at the end.
A post hook sees gradients after the engine has reduced broadcasting. AccumulateGrad gets no post hook, because it would
have to copy a gradient that it can otherwise steal. Each gradient is measured once: what leaves one node by the only
edge into another is what reaches that node, and a transpose passes on the elements that it got.

"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from msgspec.structs import replace

from gradinspect.graph import Gradients, GradientStats, Graph, Node, NodeGradients
from gradinspect.observers.gradients.node_meter import NodeMeter, Shared
from gradinspect.observers.gradients.norms import norm_of, scalar_value
from gradinspect.observers.graphs.live_graph import Survivors
from gradinspect.recording.outputs import OutputTensor
from gradinspect.recording.walk import Walk
from gradinspect.torch_api.hooks import note_ours
from gradinspect.torch_api.nodes import ACCUMULATE_GRAD_NR

# Nodes that pass on all elements of their gradient, in another order or shape.
PERMUTING = frozenset(
    f"{name}Backward{number}"
    for name in ("T", "Transpose", "Permute", "View", "UnsafeView", "ReshapeAlias", "Unsqueeze", "Squeeze", "Alias")
    for number in range(3)
)


class GradientMeter:
    """Measures the gradients of one recorded graph. Create it before the engine runs, finish after."""

    def __init__(
        self, graph: Graph, outputs: Sequence[OutputTensor], walk: Walk | None = None, *, times: bool = True
    ) -> None:
        """Hook every node.

        Args:
            graph: The record.
            outputs: The tensors that backward starts from.
            walk: The walk that the record was made from, if still open. It is closed at the end.
            times: Also time each node, which needs a hook before it as well as after it.
        """
        self._graph = graph
        self._loss = scalar_value(outputs)
        self._walk = walk or Walk(output.edge[0] for output in outputs)
        self._shared = Shared()
        self._meters: list[NodeMeter] = []
        self._handles: list[Any] = []
        self._after_each: list[Any] = []  # those on inner nodes
        # autograd.grad captures gradients before they reach the leaves, so they are measured where they leave a node.
        alone = _single_edges(graph) if graph.captured_at.kind != "grad" else set()
        for number, (node, record) in enumerate(zip(self._walk.nodes, graph.nodes, strict=True)):
            next_nodes = [
                edge.next_node if edge is not None and (edge.next_node, edge.input_nr) in alone else None
                for edge in record.next_edges
            ]
            permutes = record.name in PERMUTING and len(next_nodes) == 1 and next_nodes[0] is not None
            meter = NodeMeter(self._shared, number, next_nodes, permutes=permutes)
            self._meters.append(meter)
            is_leaf = self._walk.sequence_nrs[number] == ACCUMULATE_GRAD_NR
            if times or is_leaf or record.kind == "custom":  # custom code may write into its gradient
                self._handles.append(type(node).register_prehook(node, meter.before))
            if not is_leaf:
                self._after_each.append(type(node).register_hook(node, meter.after))
        self._handles += self._after_each
        note_ours(self._handles)

    def survivors(self) -> Survivors:
        """Return a tracker of inner nodes that are still alive. AccumulateGrad nodes outlive a graph."""
        return Survivors(self._after_each)

    def leaves(self) -> dict[int, torch.Tensor]:
        """Return the tensors behind the AccumulateGrad nodes, by the number of the node."""
        return self._walk.leaves()

    def close(self) -> None:
        """Remove the hooks and release everything."""
        for handle in self._handles:
            handle.remove()
        self._walk.close()

    def finish(self) -> Graph:
        """Remove the hooks, fetch the statistics, and return the graph with them."""
        norms = {number: norm_of(leaf) for number, leaf in self.leaves().items()}
        self.close()
        self._shared.measurements.fetch()
        gradients = Gradients(
            nodes=tuple(_resolved(self._graph, self._meters)),
            weight_norms={number: norm for number, norm in norms.items() if norm is not None},
            loss=self._loss,
        )
        return replace(self._graph, gradients=gradients)


def _single_edges(graph: Graph) -> set[tuple[int, int]]:
    """Find the inputs of nodes that only one edge leads to, and that no hook of the user may change."""
    places = [(root.node, root.output_nr) for root in graph.roots]
    places += [(edge.next_node, edge.input_nr) for node in graph.nodes for edge in node.next_edges if edge is not None]
    hooked = {number for number, node in enumerate(graph.nodes) if node.hooks}
    return {place for place, count in Counter(places).items() if count == 1 and place[0] not in hooked}


def _resolved(graph: Graph, meters: Sequence[NodeMeter]) -> list[NodeGradients]:
    """Combine the statistics. Edges lead to larger ids, so what a node passes on is known before the node."""
    found: dict[int, NodeGradients] = {}
    for meter in reversed(meters):
        if meter.order is None:
            continue
        node = graph.nodes[meter.number]
        went: list[GradientStats | None] = []
        for edge, measured in zip(node.next_edges, meter.outgoing, strict=False):
            if measured == "next":
                after = None if edge is None else found.get(edge.next_node)  # None: that node did not run
                came = () if after is None else after.incoming
                went.append(came[edge.input_nr] if edge is not None and edge.input_nr < len(came) else None)
            else:
                went.append(None if measured is None else measured.stats)
        if meter.incoming is None:
            incoming: tuple[GradientStats | None, ...] = (_reshaped(went[0], node),) if went else ()
        elif len(meter.incoming) == 1:
            first = meter.incoming[0]
            incoming = (None if first is None else first.stats,)
        else:
            incoming = tuple(None if one is None else one.stats for one in meter.incoming)
        # by position, which is faster: there may be a million
        found[meter.number] = NodeGradients(meter.number, meter.order, incoming, tuple(went), meter.seconds)
    return list(reversed(found.values()))


def _reshaped(stats: GradientStats | None, node: Node) -> GradientStats | None:
    """Give the statistics of a gradient the shape that it had before its elements were reordered."""
    info = node.forward_outputs[0] if node.forward_outputs else None
    if stats is None or info is None or not all(isinstance(size, int) for size in info.shape):
        return stats
    return replace(stats, shape=tuple(size for size in info.shape if isinstance(size, int)))
