"""Nodes that a backward call makes where their numbers are not those of the recorded thread: on devices, or elsewhere.

The engine runs the backward of device tensors on a thread of its own for each device, which no function mode observes.
With `create_graph=True` it makes nodes there. Those that the gradients lead to, and that were not there before the
call, were made by it; their line is that of the call, and their module the one that was running there, as on the CPU.

NOTE [Copies of what is overwritten]
A function that overwrites its input (`x.sin_()`, `relu6(inplace=True)`) saves a copy of it, made with a node that no
edge leads to. The double backward leads to it: it is older than the call, as the node that has saved it shows.
"""

from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

import torch

from gradinspect.graph import THREAD_SPAN
from gradinspect.recording.threads.engine_calls import engine_record
from gradinspect.recording.threads.other_threads import OWN, Followed, OtherThreads, tensors_in
from gradinspect.recording.threads.threads import EngineRecord
from gradinspect.recording.walk import Walk
from gradinspect.torch_api.engine import has_device_threads
from gradinspect.torch_api.nodes import ACCUMULATE_GRAD_NR
from gradinspect.torch_api.saved import PushedHooks, saved_contents
from gradinspect.torch_api.tensors import grad_fn_here, is_view, known_version, plain_tensors_only


def watch_engine(
    recorder: Followed | None, outputs: Sequence[Any], arguments: Sequence[Any], frame: FrameType | None
) -> Callable[[Any], None] | None:
    """Prepare to mark what a backward call makes, if its numbers will not be those of the recorded thread.

    Args:
        recorder: The recording.
        outputs: Where backward starts: tensors or GradientEdges.
        arguments: Of the engine: gradients, retain_graph, create_graph, inputs, allow_unused.
        frame: The user's line.

    Returns:
        What to call with the result of the engine, or with None if it failed; None if there is nothing to mark.
    """
    creates_graph = len(arguments) > 2 and bool(arguments[2])
    if not creates_graph or recorder is None or not recorder.is_active:
        return None
    others = recorder.others
    index = others.index_here()
    if index == OWN and not has_device_threads() and not others.has_nodes:
        return None
    inputs = (arguments[3] if len(arguments) > 3 else None) or ()
    new = NewNodes(others, (*outputs, *(arguments[0] or ()), *inputs), engine_record(recorder, frame))

    def mark(result: Any) -> None:
        new.mark(result)

    return mark


class NewNodes:
    """Finds and marks the nodes that a backward call makes. Create it before the call."""

    def __init__(self, others: OtherThreads, tensors: Sequence[Any], record: EngineRecord) -> None:
        """Walk what is there before.

        Args:
            others: Stores what was made.
            tensors: Outputs, their gradients, and inputs of the call: tensors or GradientEdges.
            record: The call.
        """
        self._others = others
        self._record = record
        before = Walk(_grad_fns(tensors))
        leaves = [*before.leaves().values(), *tensors_in(tensors)]
        self._leaves = [leaf for leaf in leaves if leaf.is_leaf]
        before.identify(others)
        older = Walk(_grad_fns([leaf.grad for leaf in self._leaves]))  # gradients that are added to
        copies = Walk(_saved_alone(before, others))
        self._earlier = before, older, copies
        older.identify(others)
        copies.identify(others)

    def mark(self, result: Any) -> list[Any]:
        """Mark what is new behind the gradients, and return it. All walks are closed.

        Args:
            result: What the engine has returned.
        """
        after = Walk(_grad_fns((*tensors_in((result,)), *(leaf.grad for leaf in self._leaves))))
        try:
            known = {node: walk.sequence_nrs[n] for walk in self._earlier for node, n in walk.numbers.items()}
            numbers = range(len(after.nodes) - 1, -1, -1)
            made_at = after.sequence_nrs
            is_new = [node not in known and made_at[n] != ACCUMULATE_GRAD_NR for n, node in enumerate(after.nodes)]
            edges = (edge for number in numbers if is_new[number] for edge in after.next_edges[number])
            reached = (after.nodes[edge.next_node] for edge in edges if edge is not None)
            border = {node: known[node] for node in reached if node in known}
            made = [after.nodes[number] for number in numbers if is_new[number]]
            self._others.add_engine_nodes(self._record, made, border.items())
            return made
        finally:
            self.close()
            after.close()

    def close(self) -> None:
        """Release the walks."""
        for walk in self._earlier:
            walk.close()


def _saved_alone(walk: Walk, others: OtherThreads) -> Iterator[Any]:
    """Yield the nodes of saved tensors that no edge leads to, marked. NOTE [Copies of what is overwritten]."""
    unread = PushedHooks(THREAD_SPAN)
    names = {
        kind: [name for name in dir(kind) if name.startswith("_raw_saved_")] for kind in set(map(type, walk.nodes))
    }
    found = []
    with plain_tensors_only():
        for node, identity in zip(walk.nodes, walk.sequence_nrs, strict=True):
            if identity >= THREAD_SPAN:  # not of the recorded thread
                continue
            for tensor in tensors_in(saved_contents(node, names[type(node)], identity, unread)):
                maker = None if known_version(tensor) != 0 and is_view(tensor) else grad_fn_here(tensor)
                if maker is not None and maker not in walk.numbers:
                    others.note_own(maker)
                    found.append(maker)
    return iter(found)


def _grad_fns(tensors: Sequence[Any]) -> Iterator[Any]:
    """Yield the nodes that made some tensors or GradientEdges."""
    found = []
    with plain_tensors_only():
        for tensor in tensors:
            node = grad_fn_here(tensor) if isinstance(tensor, torch.Tensor) else getattr(tensor, "node", None)
            if node is not None:
                found.append(node)
    return iter(found)
