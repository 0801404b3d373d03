"""Measure one backward call through node hooks: statistics of the gradients that reach and leave each node.

NOTE [Measuring without changing]
Hooks return nothing, so the engine continues with the same gradients. Statistics are computed from detached tensors, so
that no node is added under create_graph=True, and outside the modes of the program. They are fetched once, at the end.
A post hook sees gradients after the engine has reduced broadcasting. AccumulateGrad gets no post hook, because it would
have to copy a gradient that it can otherwise steal. Each gradient is measured once: what leaves one node by the only
edge into another is what reaches that node, and a transpose passes on the elements that it got.

NOTE [Gradients that are passed on]
An addition passes on the same tensor that it got. If it leads to only one node, what reaches that node is already
known. Both are seen at the same time, after the node has run, because the node's code may write into its gradient.
"""

import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Literal

import torch
from msgspec import Struct
from msgspec.structs import replace

from gradinspect.graph import Edge, Gradients, GradientStats, Graph, Node, NodeGradients
from gradinspect.observers.figures import Figures, Measurements
from gradinspect.observers.live_graph import Survivors
from gradinspect.observers.norms import norm_of, scalar_value
from gradinspect.record.outputs import OutputTensor
from gradinspect.record.walk import Walk
from gradinspect.torch_api.dynamo import uncompiled
from gradinspect.torch_api.hooks import note_ours
from gradinspect.torch_api.nodes import ACCUMULATE_GRAD_NR

# Nodes that pass on all elements of their gradient, in another order or shape.
PERMUTING = frozenset(
    f"{name}Backward{number}"
    for name in ("T", "Transpose", "Permute", "View", "UnsafeView", "ReshapeAlias", "Unsqueeze", "Squeeze", "Alias")
    for number in range(3)
)


class _Ran(Struct, gc=False):
    """The measurements of one node. A missing one was taken at another node, of the same gradient."""

    order: int
    incoming: tuple[Figures | None, ...] | None
    outgoing: tuple[Figures | Literal["none", "next"], ...] = ()
    seconds: float = 0.0
    began: float = 0.0


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
        self._measurements = Measurements()
        self._ran: dict[int, _Ran] = {}
        self._passed_on: dict[int, Figures | None] = {}  # the gradient that a node will get, if known
        self._lock = threading.Lock()
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
            is_leaf = self._walk.sequence_nrs[number] == ACCUMULATE_GRAD_NR
            if times or is_leaf or record.kind == "custom":  # custom code may write into its gradient
                self._handles.append(type(node).register_prehook(node, partial(self._enter, number, permutes)))
            if not is_leaf:
                self._after_each.append(
                    type(node).register_hook(node, partial(self._after, number, permutes, next_nodes))
                )
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
        self._measurements.fetch()
        gradients = Gradients(
            nodes=tuple(_resolved(self._graph, self._ran)),
            weight_norms={number: norm for number, norm in norms.items() if norm is not None},
            loss=self._loss,
        )
        return replace(self._graph, gradients=gradients)

    @uncompiled
    def _enter(self, number: int, permutes: bool, gradients: tuple[torch.Tensor | None, ...]) -> None:
        measured = None if permutes else self._reached(number, gradients)
        self._note(number, measured).began = time.perf_counter()

    def _note(self, number: int, measured: tuple[Figures | None, ...] | None) -> _Ran:
        with self._lock:  # each device has a thread of its own
            ran = self._ran[number] = _Ran(len(self._ran), measured)
        return ran

    def _reached(self, number: int, gradients: tuple[torch.Tensor | None, ...]) -> tuple[Figures | None, ...]:
        """Measure what reaches a node, unless it is known. NOTE [Gradients that are passed on]."""
        if len(gradients) == 1 and number in self._passed_on:
            return (self._passed_on.pop(number),)
        return self._measurements.measure(gradients)

    @uncompiled
    def _after(
        self, number: int, permutes: bool, alone: list[int | None], gradients: tuple[torch.Tensor | None, ...],
        incoming: tuple[torch.Tensor | None, ...],
    ) -> None:  # fmt: skip
        ended = time.perf_counter()
        ran = self._ran.get(number)
        if ran is not None:
            ran.seconds = max(0.0, ended - ran.began)
        else:  # it had no prehook
            ran = self._note(number, None if permutes else self._reached(number, incoming))
            self._pass_on(ran.incoming, incoming, gradients, alone)
        pairs = list(zip(gradients, alone, strict=False))
        leaving = [one for one, next_node in pairs if next_node is None and one is not None]
        measured: Iterator[Any] = iter(self._measurements.measure(leaving) if leaving else ())
        ran.outgoing = tuple([
            "none" if one is None else "next" if next_node is not None else next(measured) or "none"
            for one, next_node in pairs
        ])  # fmt: skip

    def _pass_on(
        self, measured: tuple[Figures | None, ...] | None, incoming: tuple[torch.Tensor | None, ...],
        gradients: tuple[torch.Tensor | None, ...], alone: list[int | None],
    ) -> None:  # fmt: skip
        """Store what the next nodes will get. NOTE [Gradients that are passed on]."""
        if measured is None or len(measured) != 1 or incoming[0] is None:
            return
        for gradient, next_node in zip(gradients, alone, strict=False):
            if gradient is incoming[0] and next_node is not None:
                self._passed_on[next_node] = measured[0]


def _single_edges(graph: Graph) -> set[tuple[int, int]]:
    """Find the inputs of nodes that only one edge leads to, and that no hook of the user may change."""
    counts = Counter((root.node, root.output_nr) for root in graph.roots)
    for node in graph.nodes:
        counts.update((edge.next_node, edge.input_nr) for edge in node.next_edges if edge is not None)
    return {place for place, count in counts.items() if count == 1 and not graph.nodes[place[0]].hooks}


def _resolved(graph: Graph, ran: dict[int, _Ran]) -> list[NodeGradients]:
    """Combine the statistics. Edges lead to larger ids, so what a node passes on is known before the node."""
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
    """Return what reached the end of an edge; None if that node did not run."""
    after = found.get(edge.next_node)
    return after.incoming[edge.input_nr] if after is not None and edge.input_nr < len(after.incoming) else None


def _reshaped(stats: GradientStats | None, node: Node) -> GradientStats | None:
    """Give the statistics of a gradient the shape that it had before its elements were reordered."""
    info = node.forward_outputs[0] if node.forward_outputs else None
    if stats is None or info is None or not all(isinstance(size, int) for size in info.shape):
        return stats
    return replace(stats, shape=tuple(size for size in info.shape if isinstance(size, int)))
