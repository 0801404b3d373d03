"""Take fingerprints: of what torch functions return during the forward pass, and of gradients during backward.

What comes in: calls that the recorder observes, and node hooks. What goes out: a `NodeValues` for each node.
NOTE [Measuring without changing] in `gradients` holds here too: no node, no hook that returns anything, no tensor of
the program kept. Ops inside of a torch function, such as those of `cross_entropy`, make tensors that the program never
holds: their nodes have no fingerprint of their outputs, but that of the function's result follows.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import count
from types import FrameType
from typing import Any

import torch

from gradinspect.graph import Fingerprint, Graph, NodeValues
from gradinspect.observers.gradients.fingerprints import Pending, fetch, measure
from gradinspect.observers.gradients.unhooked_leaves import UnhookedLeaves
from gradinspect.recording.outputs import OutputTensor
from gradinspect.recording.walk import walk_like
from gradinspect.torch_api.dynamo import uncompiled
from gradinspect.torch_api.engine import is_compiled_autograd
from gradinspect.torch_api.hooks import note_ours
from gradinspect.torch_api.nodes import sequence_nr
from gradinspect.torch_api.tensors import grad_fn_of, plain_tensors_only

MAX_RESULTS = 64  # of one call


class ForwardValues:
    """Listens to calls of torch functions: `recording.recorder.CallListener`."""

    def __init__(self) -> None:
        """Start empty."""
        self.problem: Exception | None = None
        self._found: dict[tuple[int, int], Pending] = {}  # sequence number, output_nr

    def forget(self) -> None:
        """Forget what was seen: it belongs to an earlier graph."""
        self._found.clear()

    def before(self, _func: Any, _args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
        """Take part in every call."""
        return True

    @uncompiled
    def after(
        self, _begun: Any, result: Any, start: int, end: int, _number: int | None, _frame: FrameType | None
    ) -> None:
        """Take fingerprints of the tensors that this call has made; an error of ours must not reach the program."""
        if start == end:
            return
        try:
            tensors = result if isinstance(result, tuple | list) else (result,)
            with plain_tensors_only():
                for tensor in tensors[:MAX_RESULTS]:
                    if isinstance(tensor, torch.Tensor) and tensor.requires_grad:
                        self._take(tensor, start, end)
        except Exception as error:
            self.problem = self.problem or error

    def _take(self, tensor: torch.Tensor, start: int, end: int) -> None:
        made = sequence_nr(grad_fn_of(tensor))
        if start <= made < end:
            pending = measure(tensor)
            if pending is not None:
                self._found[made, tensor.output_nr] = pending

    def of_nodes(self, graph: Graph) -> dict[tuple[int, int], Pending]:
        """Return what was found by node and output; not where threads gave a number twice."""
        numbers = [node.identity for node in graph.nodes]
        counts = Counter(numbers)
        nodes = {number: node for node, number in enumerate(numbers) if number is not None and counts[number] == 1}
        return {(nodes[made], output): found for (made, output), found in self._found.items() if made in nodes}


class ValueMeter:
    """Takes fingerprints of the gradients of one call. Create it before the engine runs, finish after."""

    def __init__(self, graph: Graph, outputs: Sequence[OutputTensor], forward: dict[tuple[int, int], Pending]) -> None:
        """Hook every node, and look at the leaves.

        Args:
            graph: The record.
            outputs: The tensors that backward starts from.
            forward: What is known of forward outputs.
        """
        self._graph = graph
        self._forward = dict(forward)
        self._incoming: dict[tuple[int, int], Pending] = {}
        self._orders: dict[int, int] = {}
        self._order = count()
        self._walk = walk_like(graph, [output.edge[0] for output in outputs])
        leaves, is_returned = self._walk.leaves(), graph.captured_at.kind == "grad"
        self.unhooked = UnhookedLeaves(leaves, are_accumulated=not is_returned) if is_compiled_autograd() else None
        hooked = self._walk.nodes if self.unhooked is None else ()
        self._handles = [type(node).register_prehook(node, self._hook(number)) for number, node in enumerate(hooked)]
        note_ours(self._handles)
        for number, leaf in leaves.items():
            pending = measure(leaf)
            if pending is not None:
                self._forward[number, 0] = pending

    def _hook(self, number: int) -> Any:
        @uncompiled
        def before(gradients: tuple[torch.Tensor | None, ...]) -> None:
            self._orders[number] = next(self._order)
            for place, gradient in enumerate(gradients):
                pending = None if gradient is None else measure(gradient)
                if pending is not None:
                    self._incoming[number, place] = pending

        return before

    def close(self) -> None:
        """Remove the hooks and release the nodes."""
        for handle in self._handles:
            handle.remove()
        self._walk.close()

    def finish(self) -> tuple[NodeValues, ...]:
        """Remove the hooks, fetch all fingerprints, and return them by node."""
        for number, gradient in () if self.unhooked is None else self.unhooked.gradients(self._walk.leaves()):
            if not isinstance(gradient, str):
                self._hook(number)((gradient,))
        self.close()
        keys = [*((0, *key) for key in self._forward), *((1, *key) for key in self._incoming)]
        prints = fetch([*self._forward.values(), *self._incoming.values()])
        self._forward.clear()
        self._incoming.clear()
        found: dict[int, tuple[dict[int, Fingerprint], dict[int, Fingerprint]]] = {}
        for (kind, node, place), one in zip(keys, prints, strict=True):
            found.setdefault(node, ({}, {}))[kind][place] = one
        return tuple(
            NodeValues(
                node=node,
                outputs=_in_place(found[node][0]),
                incoming=_in_place(found[node][1]),
                order=self._orders.get(node),
            )
            for node in sorted(found)
        )


def _in_place(found: dict[int, Fingerprint]) -> tuple[Fingerprint | None, ...]:
    return tuple(found.get(place) for place in range(max(found, default=-1) + 1))
