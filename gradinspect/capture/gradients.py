"""Watch one backward call through node hooks: the gradients that reach and leave each node, in numbers.

NOTE [Watching without changing]
Hooks return nothing, so the engine goes on with what it had. Numbers are computed under no_grad from detached tensors,
so that no node is added under create_graph=True. They stay on the gradient's device and are fetched once, at the end.
A post hook sees gradients after the engine has reduced broadcasting. AccumulateGrad gets no post hook: it would have
to copy a gradient that it can otherwise take over. A gradient is measured once: what leaves one node by the only edge
into another is what reaches that, and what a transpose gets is what it passes on.
"""

import threading
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import torch
from msgspec.structs import replace

from gradinspect.capture.norms import norm_of, plain_values
from gradinspect.capture.outputs import OutputTensor
from gradinspect.capture.walk import Walk
from gradinspect.graph import Edge, Gradients, GradientStats, Graph, Node, NodeGradients
from gradinspect.torch_api.dynamo import uncompiled
from gradinspect.torch_api.modes import Unobserved, computes_by_itself
from gradinspect.torch_api.nodes import ACCUMULATE_GRAD_NR

# Nodes that pass the elements of their gradient on, all of them, in another order or shape.
PERMUTING = frozenset(
    f"{name}Backward{number}"
    for name in ("T", "Transpose", "Permute", "View", "UnsafeView", "ReshapeAlias", "Unsqueeze", "Squeeze", "Alias")
    for number in range(3)
)


class _Measured:
    """Numbers of one gradient, still on its device."""

    __slots__ = ("counts", "dtype", "figures", "num_elements", "shape")

    def __init__(self, gradient: torch.Tensor, figures: torch.Tensor, counts: torch.Tensor) -> None:
        self.shape = tuple(gradient.shape)
        self.dtype = str(gradient.dtype).removeprefix("torch.")
        self.figures = figures  # norm, lowest, highest, sum: in the gradient's own precision, for MPS has no float64
        self.counts = counts  # not zero, not finite: whole numbers, for float32 counts to 16,777,216 only
        self.num_elements = gradient.numel()


class _Ran:
    """What was seen of one node. A missing measurement is the same gradient's elsewhere."""

    __slots__ = ("began", "incoming", "order", "outgoing", "seconds")

    def __init__(self, order: int, incoming: list[_Measured | None] | None) -> None:
        self.order = order
        self.incoming = incoming
        self.outgoing: list[_Measured | Literal["none", "next"]] = []
        self.seconds = 0.0
        self.began = time.perf_counter()


class GradientWatch:
    """Watches the nodes of one recorded graph. Begin before the engine runs, finish after."""

    def __init__(self, graph: Graph, outputs: Sequence[OutputTensor]) -> None:
        """Hook every node. The walk is the record's own, so numbers are those of the record."""
        self._graph = graph
        self._loss = _scalar(outputs)
        self._walk = Walk(output.edge[0] for output in outputs)
        self._ran: dict[int, _Ran] = {}
        self._lock = threading.Lock()
        self._handles: list[Any] = []
        # autograd.grad takes gradients away before they reach the leaves, so they are measured where they leave.
        alone = _single_edges(graph) if graph.captured_at.kind != "grad" else set()
        for number, node in enumerate(self._walk.nodes):
            record = graph.nodes[number]
            places = [edge is not None and (edge.next_node, edge.input_nr) in alone for edge in record.next_edges]
            permutes = record.name in PERMUTING and places == [True]
            self._handles.append(type(node).register_prehook(node, partial(self._before, number, permutes)))
            if self._walk.sequence_nrs[number] != ACCUMULATE_GRAD_NR:
                self._handles.append(type(node).register_hook(node, partial(self._after, number, places)))

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
        gradients = Gradients(
            nodes=tuple(_resolved(self._graph, self._ran)),
            weight_norms={number: norm for number, norm in norms.items() if norm is not None},
            loss=self._loss,
        )
        return replace(self._graph, gradients=gradients)

    @uncompiled
    def _before(self, number: int, permutes: bool, gradients: tuple[torch.Tensor | None, ...]) -> None:
        measured = None if permutes else [_measure(gradient) for gradient in gradients]
        with self._lock:  # each device has a thread of its own
            self._ran[number] = _Ran(len(self._ran), measured)

    @uncompiled
    def _after(
        self, number: int, alone: list[bool], gradients: tuple[torch.Tensor | None, ...], _incoming: object
    ) -> None:
        ran = self._ran.get(number)
        if ran is not None:
            ran.seconds = time.perf_counter() - ran.began
            ran.outgoing = [
                "none" if gradient is None else "next" if is_alone else _measure(gradient) or "none"
                for gradient, is_alone in zip(gradients, alone, strict=False)
            ]


def _single_edges(graph: Graph) -> set[tuple[int, int]]:
    """Find the inputs of nodes that one edge alone leads to and no hook of the user may change on the way."""
    counts = Counter((root.node, root.output_nr) for root in graph.roots)
    for node in graph.nodes:
        counts.update((edge.next_node, edge.input_nr) for edge in node.next_edges if edge is not None)
    return {place for place, count in counts.items() if count == 1 and not graph.nodes[place[0]].hooks}


def _resolved(graph: Graph, ran: dict[int, _Ran]) -> list[NodeGradients]:
    """Put the numbers together. Edges lead to larger ids, so what a node passes on is known before the node."""
    every = [m for one in ran.values() for m in (*(one.incoming or ()), *one.outgoing)]
    fetched = _fetch([m for m in every if isinstance(m, _Measured)])
    found: dict[int, NodeGradients] = {}
    for number in sorted(ran, reverse=True):
        node, one = graph.nodes[number], ran[number]
        outgoing = [
            fetched[id(measured)]
            if isinstance(measured, _Measured)
            else _reached(edge, found)
            if edge is not None and measured == "next"
            else None
            for edge, measured in zip(node.next_edges, one.outgoing, strict=False)
        ]
        if one.incoming is None:
            incoming: tuple[GradientStats | None, ...] = (_reshaped(outgoing[0], node),) if outgoing else ()
        else:
            incoming = tuple(None if m is None else fetched[id(m)] for m in one.incoming)
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


def _measure(gradient: torch.Tensor | None) -> _Measured | None:
    """Compute the numbers of one gradient; None where there is none, or of a kind that cannot be measured."""
    if gradient is None or computes_by_itself(gradient):
        return None
    try:
        with Unobserved():
            return _figures(gradient)
    except (RuntimeError, NotImplementedError, TypeError):
        return None


def _figures(gradient: torch.Tensor) -> _Measured | None:
    values = plain_values(gradient)
    if not values.numel():
        return None
    norm = torch.linalg.vector_norm(values)
    low, high = torch.aminmax(values)
    if values.device.type == "cpu" and bool(norm.isfinite()):
        num_nonfinite = torch.zeros((), dtype=torch.int64)  # looked at, which costs nothing here
    else:
        num_nonfinite = torch.isfinite(values).logical_not_().sum()
    counts = torch.stack((torch.count_nonzero(values), num_nonfinite))
    return _Measured(gradient, torch.stack((norm, low, high, values.sum())), counts)


def _fetch(measured: Sequence[_Measured]) -> dict[int, GradientStats]:
    """Bring all numbers over, in two transfers for each device and precision."""
    alike: dict[tuple[torch.device, torch.dtype], list[_Measured]] = {}
    for item in measured:
        alike.setdefault((item.figures.device, item.figures.dtype), []).append(item)
    fetched: dict[int, GradientStats] = {}
    for items in alike.values():
        with Unobserved():
            rows = torch.stack([item.figures for item in items]).tolist()
            counts = torch.stack([item.counts for item in items]).tolist()
        for item, (norm, low, high, total), (num_nonzero, num_nonfinite) in zip(items, rows, counts, strict=True):
            fetched[id(item)] = GradientStats(
                shape=item.shape,
                dtype=item.dtype,
                norm=norm,
                max_abs=max(abs(low), abs(high)),
                mean=total / item.num_elements,
                num_zeros=item.num_elements - num_nonzero,
                num_nonfinite=num_nonfinite,
                num_elements=item.num_elements,
            )
    return fetched


def _scalar(outputs: Sequence[OutputTensor]) -> float | None:
    value = outputs[0].value if len(outputs) == 1 else None
    if not isinstance(value, torch.Tensor) or computes_by_itself(value):
        return None
    try:
        with Unobserved():
            return None if value.numel() != 1 or value.is_complex() else float(value.detach())
    except RuntimeError:  # inside a transform of torch.func a tensor does not tell its value
        return None
