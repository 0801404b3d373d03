"""The graph that backward builds with create_graph=True, for second derivatives.

The gradients of the leaves are computed once, by `autograd.grad`, so that no leaf's `.grad` changes. Each new node is
stored with the node that was running, and inherits its module and source line.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import partial
from threading import get_ident
from typing import NamedTuple

import torch

from gradinspect.errors import GradInspectError, text_of
from gradinspect.graph import Graph
from gradinspect.recording.outputs import OutputTensor, requires_grad
from gradinspect.recording.threads.engine_nodes import NewNodes
from gradinspect.recording.threads.other_threads import OWN, OtherThreads
from gradinspect.recording.threads.threads import NOWHERE, EngineRecord, ThreadRecord
from gradinspect.recording.walk import Walk, walk_like
from gradinspect.torch_api.dynamo import uncompiled
from gradinspect.torch_api.engine import has_device_threads
from gradinspect.torch_api.nodes import next_sequence_nr, require_sequence_numbers, sequence_nr
from gradinspect.torch_api.patching.originals import gradients_of


class Maker(NamedTuple):
    """The node whose backward made another node."""

    name: str
    identity: int


class SecondOrder(NamedTuple):
    """The gradients of the leaves, with their graph."""

    outputs: list[OutputTensor]
    makers: dict[int, Maker]  # identity -> the node whose backward made it


def gradients_with_graph(
    graph: Graph,
    outputs: Sequence[OutputTensor],
    gradients: Sequence[torch.Tensor | None],
    others: OtherThreads | None = None,
) -> SecondOrder:
    """Compute the gradients of all leaves, with a graph.

    Args:
        graph: The record of the graph.
        outputs: Where backward starts.
        gradients: The gradient of each output.
        others: The threads that made nodes; what devices make is added.

    Raises:
        GradInspectError: The gradients depend on nothing that requires grad, or backward fails.
    """
    require_sequence_numbers("--create-graph")
    others = others or OtherThreads(ThreadRecord(), lambda: None)
    walk = walk_like(graph, [output.edge[0] for output in outputs])
    here = EngineRecord(None, others.index_here(), NOWHERE)
    watch = _MakerLog(graph, walk, is_recorded_thread=here.thread == OWN)
    leaves = walk.leaves()
    values = [output.value for output in outputs]
    is_elsewhere = has_device_threads() or here.thread != OWN or others.has_nodes
    new = NewNodes(others, (*values, *gradients), here) if is_elsewhere else None
    try:
        found = gradients_of(
            values, list(leaves.values()),
            gradients, create_graph=True, allow_unused=True,
        )  # fmt: skip
    except RuntimeError as error:
        reason = (text_of(error).splitlines() or [type(error).__name__])[0]
        if new is not None:
            new.close()
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
    made = [] if new is None else [(node, sequence_nr(node)) for node in new.mark(found)]
    return SecondOrder(named, watch.makers(((others.identity_of(node), number) for node, number in made)))


class _MakerLog:
    """Logs which node runs while others are made.

    Nodes made after a node has run and before the next one does accumulate its gradients, so they belong to it too.
    """

    def __init__(self, graph: Graph, walk: Walk, *, is_recorded_thread: bool) -> None:
        self._thread = get_ident() if is_recorded_thread else None  # whose numbers alone are identities
        self._ran: dict[int, list[tuple[int, Maker]]] = {}  # thread -> where each node began to run
        self._end = 0
        identities = [node.identity for node in graph.nodes]
        self._handles = [
            type(node).register_prehook(node, partial(self._before, Maker(graph.nodes[number].name, identity)))
            for number, (node, identity) in enumerate(zip(walk.nodes, identities, strict=True))
            if identity is not None
        ]

    def close(self) -> None:
        self._end = next_sequence_nr()
        for handle in self._handles:
            handle.remove()

    def makers(self, elsewhere: Iterable[tuple[int, int]]) -> dict[int, Maker]:
        """Return the makers by the identity of what they made.

        Args:
            elsewhere: Identity and sequence number of each node that has no number of this thread.
        """
        found: dict[int, Maker] = {}
        here = [] if self._thread is None else self._ran.get(self._thread, [])
        ends = [*(start for start, _ in here[1:]), self._end]
        for (start, maker), end in zip(here, ends, strict=False):
            found.update(dict.fromkeys(range(start, end), maker))
        for identity, number in elsewhere:
            ran_last = [_last_before(ran, number) for ran in self._ran.values()]
            possible = [one for one in ran_last if one is not None]
            if len(possible) == 1:
                found[identity] = possible[0]
        return found

    @uncompiled
    def _before(self, maker: Maker, _gradients: object) -> None:
        self._ran.setdefault(get_ident(), []).append((next_sequence_nr(), maker))


def _last_before(ran: list[tuple[int, Maker]], number: int) -> Maker | None:
    """Return the node that ran last when a thread made the node of a number."""
    index = bisect_right(ran, number, key=lambda one: one[0]) - 1
    return ran[index][1] if index >= 0 else None


def _gradient_name(graph: Graph, number: int) -> str:
    leaf = graph.nodes[number].leaf
    return f"{(leaf.name if leaf is not None else None) or f'#{number}'}.grad"
