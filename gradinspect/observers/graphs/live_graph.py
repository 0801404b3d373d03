"""Every live autograd node, found from the tensors that Python tracks.

NOTE [What is alive]
Every tensor with a grad_fn that Python tracks is a root. So is a leaf's `.grad` with a graph, even if Python does not
track it (`create_graph=True` makes a cycle that only C++ sees). What is reachable from the roots is alive.

NOTE [Gradients that may go]
Dropping a gradient releases the GIL while the leaf still points to it, so one that is read then is freed twice. Where
other threads of the program run, only leaves below the call that starts on this one are asked for theirs.
Source: torch/csrc/autograd/python_variable.cpp `THPVariable_set_grad`, torch 2.13.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import torch

from gradinspect.recording.names.instances import instances_of
from gradinspect.recording.threads.other_threads import OtherThreads
from gradinspect.recording.transparency.release import park_wrappers
from gradinspect.recording.walk import Walk
from gradinspect.torch_api.nodes import ACCUMULATE_GRAD_NR, sequence_nr
from gradinspect.torch_api.tensors import grad_fn_of, plain_tensors_only


class LiveGraph:
    """All live nodes, with the tensors and gradients that are their roots."""

    def __init__(
        self, tensors: list[torch.Tensor], threads: OtherThreads | None = None, outputs: Iterable[Any] = ()
    ) -> None:
        """Walk the graph from these tensors.

        Args:
            tensors: Where to begin.
            threads: Those that may have made nodes.
            outputs: Those of the call that is about to start.
        """
        self.tensors = tensors
        self.gradients: list[torch.Tensor] = []
        self._safe: Collection[Any] | None = None  # nodes whose leaf may be asked. NOTE [Gradients that may go]
        if threads is not None and threads.are_running():
            self._safe = frozenset(reachable(grad_fns_of(outputs)))
        with plain_tensors_only():  # the gradients that are read here are not read by the program
            self.nodes = reachable((tensor.grad_fn for tensor in tensors), self._after)
        self._identities: dict[Any, int] = {}
        if threads is not None and threads.has_nodes:
            walk = Walk(self.nodes)
            walk.identify(threads)
            self._identities = dict(zip(walk.nodes, walk.sequence_nrs, strict=True))
            walk.close()

    def number_of(self, node: Any) -> int:
        """Identify a node: by its sequence number, and by its thread if there are several."""
        found = self._identities.get(node)
        return sequence_nr(node) if found is None else found

    def _after(self, node: Any) -> Iterator[Any]:
        """Yield the nodes that one keeps alive, including those behind the gradient of a leaf."""
        yield from next_nodes(node)
        if self._safe is not None and node not in self._safe:
            return
        gradient = getattr(getattr(node, "variable", None), "grad", None)
        if gradient is not None and gradient.grad_fn is not None:
            self.gradients.append(gradient)
            yield gradient.grad_fn

    def close(self) -> None:
        """Release the nodes in the order that a walked graph requires: newest first."""
        nodes, self.nodes, self.tensors, self.gradients, self._safe = self.nodes, [], [], [], None
        self._identities.clear()
        nodes.sort(key=sequence_nr, reverse=True)
        leaves = 0
        while leaves < len(nodes) and sequence_nr(nodes[leaves]) == ACCUMULATE_GRAD_NR:
            leaves += 1
        park_wrappers(nodes[leaves:] + nodes[:leaves])


class Survivors:
    """Tracks whether any node of a hooked graph is still alive, without keeping it alive."""

    def __init__(self, nodes: Sequence[Callable[[], object]]) -> None:
        """Store a weak reference to each node."""
        self._nodes = nodes

    def are_there(self) -> bool:
        """Return whether any node is alive."""
        if any(node() is not None for node in self._nodes):
            return True
        self._nodes = ()
        return False


def tensors_with_graph() -> list[torch.Tensor]:
    """Return every tensor with a graph that Python tracks."""
    found = []
    for item in instances_of(torch.Tensor):
        try:
            is_root = grad_fn_of(item) is not None
        except Exception:  # noqa: S112  # a subclass of the user that raises when inspected
            continue
        if is_root:
            found.append(item)
    return found


def grad_fns_of(outputs: Iterable[Any]) -> Iterator[Any]:
    """Yield the nodes of the outputs of a call; leaves and gradient edges have none."""
    return (output.grad_fn for output in outputs if getattr(output, "grad_fn", None) is not None)


def next_nodes(node: Any) -> Iterator[Any]:
    """Yield the next nodes, which get a node's gradients."""
    return (next_node for next_node, _ in node.next_functions if next_node is not None)


def reachable(roots: Iterable[Any], after: Callable[[Any], Iterable[Any]] = next_nodes) -> list[Any]:
    """List the roots and all nodes reachable from them, each once; `after` is called once per node."""
    seen = dict.fromkeys(roots)
    nodes = list(seen)
    for node in nodes:
        for next_node in after(node):
            if next_node not in seen:
                seen[next_node] = None
                nodes.append(next_node)
    return nodes


def reaching(live: LiveGraph, is_wanted: Callable[[int], bool]) -> set[Any]:
    """Return the nodes that keep one with a wanted number alive."""
    found = {node for node in live.nodes if is_wanted(live.number_of(node))}
    if not found:
        return found
    before: dict[Any, list[Any]] = {}
    for node in live.nodes:
        for after in next_nodes(node):
            before.setdefault(after, []).append(node)
    todo = list(found)
    for node in todo:
        new = [one for one in before.get(node, ()) if one not in found]
        found.update(new)
        todo += new
    return found
