"""The graph that backward builds with create_graph=True, for second derivatives.

The gradients of the leaves are computed once, by `autograd.grad`, so that no leaf's `.grad` changes. Each new node is
stored with the node that was running, and inherits its module and source line.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import torch

from gradinspect.errors import GradInspectError, text_of
from gradinspect.graph import Graph
from gradinspect.recording.outputs import OutputTensor, requires_grad
from gradinspect.recording.walk import Walk
from gradinspect.torch_api.dynamo import uncompiled
from gradinspect.torch_api.nodes import ACCUMULATE_GRAD_NR, next_sequence_nr, require_sequence_numbers


class Maker(NamedTuple):
    """The node whose backward made another node."""

    name: str
    sequence_nr: int


class SecondOrder(NamedTuple):
    """The gradients of the leaves, with their graph."""

    outputs: list[OutputTensor]
    makers: dict[int, Maker]  # sequence number -> the node whose backward made it


def gradients_with_graph(
    graph: Graph, outputs: Sequence[OutputTensor], gradients: Sequence[torch.Tensor | None]
) -> SecondOrder:
    """Compute the gradients of all leaves, with a graph.

    Args:
        graph: The record of the graph.
        outputs: Where backward starts.
        gradients: The gradient of each output.

    Raises:
        GradInspectError: The gradients depend on nothing that requires grad, or backward fails.
    """
    require_sequence_numbers("--create-graph")
    walk = Walk(output.edge[0] for output in outputs)
    watch = _MakerLog(graph, walk)
    leaves = walk.leaves()
    try:
        found = torch.autograd.grad(
            [output.value for output in outputs], list(leaves.values()),
            gradients, create_graph=True, allow_unused=True,
        )  # fmt: skip
    except RuntimeError as error:
        reason = (text_of(error).splitlines() or [type(error).__name__])[0]
        raise GradInspectError(f"Backward of '{graph.source}' fails: {reason}") from None
    finally:
        watch.close()
        walk.close()
    named = [
        OutputTensor(_gradient_name(graph, number), gradient)
        for number, gradient in zip(leaves, found, strict=True)
        if gradient is not None and requires_grad(gradient) and not gradient.is_leaf
    ]
    if not named:
        raise GradInspectError(
            f"The gradients of '{graph.source}' depend on nothing that requires grad, so backward builds no graph.",
            "Second derivatives are zero. Remove --create-graph.",
        )
    return SecondOrder(named, watch.makers)


class _MakerLog:
    """Logs which node runs while others are made.

    Nodes made after a node has run and before the next one does accumulate its gradients, so they belong to it too.
    """

    def __init__(self, graph: Graph, walk: Walk) -> None:
        self.makers: dict[int, Maker] = {}
        self._graph = graph
        self._walk = walk
        self._running: tuple[Maker, int] | None = None
        self._handles = [
            type(node).register_prehook(node, partial(self._before, number))
            for number, node in enumerate(walk.nodes)
            if walk.sequence_nrs[number] != ACCUMULATE_GRAD_NR
        ]

    def close(self) -> None:
        self._end()
        for handle in self._handles:
            handle.remove()

    @uncompiled
    def _before(self, number: int, _gradients: object) -> None:
        self._end()
        maker = Maker(self._graph.nodes[number].name, self._walk.sequence_nrs[number])
        self._running = maker, next_sequence_nr()

    def _end(self) -> None:
        if self._running is not None:
            maker, start = self._running
            self.makers.update(dict.fromkeys(range(start, next_sequence_nr()), maker))


def _gradient_name(graph: Graph, number: int) -> str:
    leaf = graph.nodes[number].leaf
    return f"{(leaf.name if leaf is not None else None) or f'#{number}'}.grad"
