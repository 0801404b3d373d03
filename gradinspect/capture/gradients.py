"""Watch one backward call through node hooks: the gradients that reach and leave each node, in numbers.

NOTE [Watching without changing]
Hooks return nothing, so the engine goes on with what it had. Numbers are computed under no_grad from detached tensors,
so that no node is added under create_graph=True. They stay on the gradient's device and are fetched once, at the end.
A post hook sees gradients after the engine has reduced broadcasting. AccumulateGrad gets no post hook: it would have
to copy a gradient that it can otherwise take over.
"""

import threading
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from gradinspect.analyses.gradients import Gradients, GradientStats, NodeGradients
from gradinspect.capture.outputs import OutputTensor
from gradinspect.capture.walk import ACCUMULATE_GRAD_NR, Walk
from gradinspect.graph import Graph


class _Measured:
    """Numbers of one gradient, still on its device."""

    __slots__ = ("dtype", "figures", "num_elements", "shape")

    def __init__(self, gradient: torch.Tensor, figures: torch.Tensor, num_elements: int) -> None:
        self.shape = tuple(gradient.shape)
        self.dtype = str(gradient.dtype).removeprefix("torch.")
        self.figures = figures
        self.num_elements = num_elements


class _Ran:
    """What was seen of one node."""

    __slots__ = ("began", "incoming", "order", "outgoing", "seconds")

    def __init__(self, order: int, incoming: list[_Measured | None]) -> None:
        self.order = order
        self.incoming = incoming
        self.outgoing: list[_Measured | None] = []
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
        for number, node in enumerate(self._walk.nodes):
            self._handles.append(node.register_prehook(partial(self._before, number)))
            if self._walk.sequence_nrs[number] != ACCUMULATE_GRAD_NR:
                self._handles.append(node.register_hook(partial(self._after, number)))

    def finish(self) -> Gradients:
        """Take the hooks away, fetch the numbers, and return them."""
        for handle in self._handles:
            handle.remove()
        norms = {
            number: _norm(node.variable)
            for number, node in enumerate(self._walk.nodes)
            if self._walk.sequence_nrs[number] == ACCUMULATE_GRAD_NR and getattr(node, "variable", None) is not None
        }
        self._walk.close()
        fetched = _fetch([m for ran in self._ran.values() for m in (*ran.incoming, *ran.outgoing) if m is not None])
        nodes = tuple(
            NodeGradients(
                node=number,
                order=ran.order,
                incoming=tuple(None if m is None else fetched[id(m)] for m in ran.incoming),
                outgoing=tuple(None if m is None else fetched[id(m)] for m in ran.outgoing),
                seconds=ran.seconds,
            )
            for number, ran in sorted(self._ran.items())
        )
        return Gradients(
            graph=self._graph,
            nodes=nodes,
            weight_norms={number: norm for number, norm in norms.items() if norm is not None},
            loss=self._loss,
        )

    def _before(self, number: int, gradients: tuple[torch.Tensor | None, ...]) -> None:
        measured = [_measure(gradient) for gradient in gradients]
        with self._lock:  # each device has a thread of its own
            self._ran[number] = _Ran(len(self._ran), measured)

    def _after(self, number: int, gradients: tuple[torch.Tensor | None, ...], _incoming: object) -> None:
        ran = self._ran.get(number)
        if ran is not None:
            ran.seconds = time.perf_counter() - ran.began
            ran.outgoing = [_measure(gradient) for gradient in gradients]


def _measure(gradient: torch.Tensor | None) -> _Measured | None:
    """Compute the numbers of one gradient; None where there is none, or of a kind that cannot be measured."""
    if gradient is None:
        return None
    try:
        with torch.no_grad(), torch._C.DisableTorchFunction():
            return _figures(gradient)
    except (RuntimeError, NotImplementedError, TypeError):
        return None


def _figures(gradient: torch.Tensor) -> _Measured | None:
    values = gradient.detach()
    num_elements = values.numel()
    if values.layout is not torch.strided:
        values = values.coalesce().values() if values.layout is torch.sparse_coo else values.values()
    values = values.abs() if values.is_complex() else values
    if values.dtype not in (torch.float32, torch.float64):
        values = values.float()
    if not values.numel():
        return None
    norm = torch.linalg.vector_norm(values)
    low, high = torch.aminmax(values)
    num_nonzero = torch.count_nonzero(values)
    if values.device.type == "cpu" and bool(norm.isfinite()):
        num_nonfinite = torch.zeros(())  # looked at, which costs nothing here
    else:
        num_nonfinite = torch.isfinite(values).logical_not_().sum()
    parts = (norm, low, high, values.sum(), num_nonzero, num_nonfinite)
    return _Measured(gradient, torch.stack([part.to(torch.float64) for part in parts]), num_elements)


def _fetch(measured: Sequence[_Measured]) -> dict[int, GradientStats]:
    """Bring all numbers over, one transfer a device."""
    by_device: dict[torch.device, list[_Measured]] = {}
    for item in measured:
        by_device.setdefault(item.figures.device, []).append(item)
    fetched: dict[int, GradientStats] = {}
    for items in by_device.values():
        with torch.no_grad():
            rows = torch.stack([item.figures for item in items]).tolist()
        for item, (norm, low, high, total, num_nonzero, num_nonfinite) in zip(items, rows, strict=True):
            fetched[id(item)] = GradientStats(
                shape=item.shape,
                dtype=item.dtype,
                norm=norm,
                max_abs=max(abs(low), abs(high)),
                mean=total / item.num_elements,
                num_zeros=item.num_elements - int(num_nonzero),
                num_nonfinite=int(num_nonfinite),
                num_elements=item.num_elements,
            )
    return fetched


def _norm(tensor: torch.Tensor) -> float | None:
    measured = _measure(tensor)
    return None if measured is None else float(measured.figures[0])


def _scalar(outputs: Sequence[OutputTensor]) -> float | None:
    value = outputs[0].value if len(outputs) == 1 else None
    if isinstance(value, torch.Tensor) and value.numel() == 1 and not value.is_complex():
        return float(value.detach())
    return None
