"""Watch one backward call through node hooks: the gradients that reach and leave each node, in numbers.

NOTE [Watching without changing]
Hooks return nothing, so the engine goes on with what it had. Numbers are computed from detached tensors, so that no
node is added under create_graph=True, where nobody who watches operators sees it. They are fetched once, at the end. A
post hook sees gradients after the engine has reduced broadcasting. AccumulateGrad gets no post hook: it would have to
copy a gradient that it can otherwise take over. A gradient is measured once: what leaves one node by the only edge into
another is what reaches that, and what a transpose gets is what it passes on.
"""

import threading
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import torch
from msgspec import Struct
from msgspec.structs import replace

from gradinspect.graph import Edge, Gradients, GradientStats, Graph, Node, NodeGradients
from gradinspect.observers.figures import Figures, Measurements
from gradinspect.observers.norms import norm_of
from gradinspect.record.outputs import OutputTensor
from gradinspect.record.walk import Walk
from gradinspect.torch_api.dynamo import uncompiled
from gradinspect.torch_api.modes import Unobserved, computes_by_itself
from gradinspect.torch_api.nodes import ACCUMULATE_GRAD_NR

# Nodes that pass the elements of their gradient on, all of them, in another order or shape.
PERMUTING = frozenset(
    f"{name}Backward{number}"
    for name in ("T", "Transpose", "Permute", "View", "UnsafeView", "ReshapeAlias", "Unsqueeze", "Squeeze", "Alias")
    for number in range(3)
)


class _Ran(Struct, gc=False):
    """What was seen of one node. A missing measurement is the same gradient's elsewhere."""

    order: int
    incoming: tuple[Figures | None, ...] | None
    outgoing: tuple[Figures | Literal["none", "next"], ...] = ()
    seconds: float = 0.0
    began: float = 0.0


class GradientMeter:
    """Watches the nodes of one recorded graph. Begin before the engine runs, finish after."""

    def __init__(self, graph: Graph, outputs: Sequence[OutputTensor], *, times: bool = True) -> None:
        """Hook every node. The walk is the record's own, so numbers are those of the record.

        Args:
            graph: The record.
            outputs: What backward begins at.
            times: Take the time of each node too, which needs a hook before it as well as one after it.
        """
        self._graph = graph
        self._loss = _scalar(outputs)
        self._walk = Walk(output.edge[0] for output in outputs)
        self._measurements = Measurements()
        self._ran: dict[int, _Ran] = {}
        self._lock = threading.Lock()
        self._handles: list[Any] = []
        # autograd.grad takes gradients away before they reach the leaves, so they are measured where they leave.
        alone = _single_edges(graph) if graph.captured_at.kind != "grad" else set()
        for number, node in enumerate(self._walk.nodes):
            record = graph.nodes[number]
            places = [edge is not None and (edge.next_node, edge.input_nr) in alone for edge in record.next_edges]
            permutes = record.name in PERMUTING and places == [True]
            is_leaf = self._walk.sequence_nrs[number] == ACCUMULATE_GRAD_NR
            if times or is_leaf or record.kind == "custom":  # whose code may write into the gradient that it gets
                self._handles.append(type(node).register_prehook(node, partial(self._enter, number, permutes)))
            if not is_leaf:
                self._handles.append(type(node).register_hook(node, partial(self._after, number, permutes, places)))

    def leaves(self) -> dict[int, torch.Tensor]:
        """Return the tensors behind the AccumulateGrad nodes, by the number of the node."""
        return {
            number: node.variable
            for number, node in enumerate(self._walk.nodes)
            if self._walk.sequence_nrs[number] == ACCUMULATE_GRAD_NR and getattr(node, "variable", None) is not None
        }

    def close(self) -> None:
        """Take the hooks away and keep nothing."""
        for handle in self._handles:
            handle.remove()
        self._walk.close()

    def finish(self) -> Graph:
        """Take the hooks away, fetch the numbers, and return the graph with them."""
        norms = {number: norm_of(leaf) for number, leaf in self.leaves().items()}
        self.close()
        self._measurements.fetch()
        gradients = Gradients(
            nodes=tuple(_resolved(self._graph, self._ran)),
            weight_norms={number: norm for number, norm in norms.items() if norm is not None},
            loss=self._loss,
        )
        return replace(self._graph, gradients=gradients)

    @uncompiled
    def _enter(self, number: int, permutes: bool, gradients: tuple[torch.Tensor | None, ...]) -> None:
        self._before(number, permutes, gradients)

    def _before(self, number: int, permutes: bool, gradients: tuple[torch.Tensor | None, ...]) -> _Ran:
        measured = None if permutes else tuple(map(self._measurements.measure, gradients))
        with self._lock:  # each device has a thread of its own
            ran = self._ran[number] = _Ran(len(self._ran), measured, began=time.perf_counter())
        return ran

    @uncompiled
    def _after(
        self, number: int, permutes: bool, alone: list[bool], gradients: tuple[torch.Tensor | None, ...],
        incoming: tuple[torch.Tensor | None, ...],
    ) -> None:  # fmt: skip
        ended = time.perf_counter()
        ran = self._ran.get(number)
        if ran is None:  # nobody looked before
            ran = self._before(number, permutes, incoming)
        ran.seconds = max(0.0, ended - ran.began)
        ran.outgoing = tuple(
            "none" if gradient is None else "next" if is_alone else self._measurements.measure(gradient) or "none"
            for gradient, is_alone in zip(gradients, alone, strict=False)
        )


def _single_edges(graph: Graph) -> set[tuple[int, int]]:
    """Find the inputs of nodes that one edge alone leads to and no hook of the user may change on the way."""
    counts = Counter((root.node, root.output_nr) for root in graph.roots)
    for node in graph.nodes:
        counts.update((edge.next_node, edge.input_nr) for edge in node.next_edges if edge is not None)
    return {place for place, count in counts.items() if count == 1 and not graph.nodes[place[0]].hooks}


def _resolved(graph: Graph, ran: dict[int, _Ran]) -> list[NodeGradients]:
    """Put the numbers together. Edges lead to larger ids, so what a node passes on is known before the node."""
    found: dict[int, NodeGradients] = {}
    for number in sorted(ran, reverse=True):
        node, one = graph.nodes[number], ran[number]
        outgoing = [
            measured.stats
            if isinstance(measured, Figures)
            else _reached(edge, found)
            if edge is not None and measured == "next"
            else None
            for edge, measured in zip(node.next_edges, one.outgoing, strict=False)
        ]
        if one.incoming is None:
            incoming: tuple[GradientStats | None, ...] = (_reshaped(outgoing[0], node),) if outgoing else ()
        else:
            incoming = tuple(None if m is None else m.stats for m in one.incoming)
        found[number] = NodeGradients(
            node=number, order=one.order, incoming=incoming, outgoing=tuple(outgoing), seconds=one.seconds
        )
    return [found[number] for number in sorted(found)]


def _reached(edge: Edge, found: dict[int, NodeGradients]) -> GradientStats | None:
    """Return what reached the end of an edge; None where that node did not run."""
    after = found.get(edge.next_node)
    return after.incoming[edge.input_nr] if after is not None and edge.input_nr < len(after.incoming) else None


def _reshaped(stats: GradientStats | None, node: Node) -> GradientStats | None:
    """Give the numbers of a gradient the shape that it had before its elements were put into another order."""
    info = node.forward_outputs[0] if node.forward_outputs else None
    if stats is None or info is None or not all(isinstance(size, int) for size in info.shape):
        return stats
    return replace(stats, shape=tuple(size for size in info.shape if isinstance(size, int)))


def _scalar(outputs: Sequence[OutputTensor]) -> float | None:
    value = outputs[0].value if len(outputs) == 1 else None
    if not isinstance(value, torch.Tensor) or computes_by_itself(value):
        return None
    with Unobserved():
        if value.numel() != 1 or value.is_complex():
            return None
        try:
            return float(value.detach())
        except RuntimeError:  # inside a transform of torch.func a tensor does not tell its value
            return None
