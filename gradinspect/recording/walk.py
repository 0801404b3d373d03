"""Find all nodes from the roots, iteratively, in topological order, with their edges."""

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import torch
from msgspec.structs import replace

from gradinspect.analyses.selection.node_numbers import NodeNumbers
from gradinspect.graph import THREAD_SPAN, Edge, Graph
from gradinspect.recording.threads.other_threads import OtherThreads
from gradinspect.recording.transparency.release import park_wrappers
from gradinspect.torch_api.nodes import (
    ACCUMULATE_GRAD_NR,
    UNKNOWN_NR,
    has_sequence_numbers,
    next_sequence_nr,
    sequence_nr,
)

NextFunctions: TypeAlias = tuple[tuple[Any, int], ...]


class Walk:
    """The live nodes of one graph, in topological order, root side first.

    Holds a wrapper of every node, so that identities stay valid while they are read. Close it as soon as the record is
    made; see NOTE [Walked graphs are freed recursively] in `release`.

    Attributes:
        nodes: The live nodes.
        numbers: Live node -> its index in `nodes`.
        sequence_nrs: For each node its order of creation, per thread; see `identify`.
        next_edges: For each node the record of its `next_functions`.
        is_in_creation_order: Whether one thread made all nodes, as far as is known, so that their numbers descend.
    """

    def __init__(self, roots: Iterable[Any]) -> None:
        """Walk from the roots' grad_fns along `next_functions`."""
        self.nodes: list[Any] = []
        self.numbers: dict[Any, int] = {}
        self.sequence_nrs: list[int] = []
        self.next_edges: list[tuple[Edge | None, ...]] = []
        self.is_in_creation_order = True
        self._leaf_numbers: list[int] | None = None
        try:
            next_functions = self._find(roots)
            self._sort(next_functions)
            if not self._make_edges(next_functions):
                self.is_in_creation_order = False
                self._sort_by_edges(next_functions)
                self._make_edges(next_functions)
        except BaseException:
            self.close()
            raise

    def identify(self, threads: OtherThreads) -> int:
        """Add the thread to each of `sequence_nrs`. NOTE [Numbers of a node] in `threads`.

        The number of a node whose thread is not known becomes UNKNOWN_NR: two nodes cannot have one number, none leads
        to a newer one, and none is newer than the thread's counter.

        Returns:
            How many are not known.
        """
        numbers = self.sequence_nrs
        if not threads.has_nodes and self.is_in_creation_order and self._can_be_of_here():
            return 0
        known = threads.identities(self.nodes, numbers, self.next_edges)
        counts = Counter(known)
        odd = {number for number, one in enumerate(known) if one < UNKNOWN_NR and counts[one] > 1}
        for number, edges in enumerate(self.next_edges):
            for edge in edges:
                if edge is not None and _leads_to_newer(known[number], known[edge.next_node]):
                    odd |= {number, edge.next_node}
        self.sequence_nrs = [UNKNOWN_NR if number in odd else one for number, one in enumerate(known)]
        self.is_in_creation_order = False
        self._reorder(self._together())
        return self.sequence_nrs.count(UNKNOWN_NR)

    def known_numbers(self) -> NodeNumbers:
        """Return the identities of the nodes whose thread is known; call `identify` first."""
        return NodeNumbers(number for number in self.sequence_nrs if number < UNKNOWN_NR)

    def align(self, graph: Graph, roots: Iterable[Any]) -> None:
        """Bring the nodes into the order of a record that was made of the same graph, from the same roots."""
        found = {root.node: self.numbers[node] for root, node in zip(graph.roots, roots, strict=True)}
        todo = list(found)
        for number in todo:
            for edge, live in zip(graph.nodes[number].next_edges, self.next_edges[found[number]], strict=True):
                if edge is not None and live is not None and edge.next_node not in found:
                    found[edge.next_node] = live.next_node
                    todo.append(edge.next_node)
        self._reorder([found[number] for number in range(len(graph.nodes))])

    def _together(self) -> list[int]:
        """Order the nodes so that those of another thread come together, after what they lead up to.

        A node of the recorded thread comes as late as its number; any other one right after those that lead to it.
        """
        known = self.sequence_nrs
        leaves: list[int] = []
        waiting = Counter(edge.next_node for edges in self.next_edges for edge in edges if edge is not None)
        ready = [(-one if one < THREAD_SPAN else 0, number) for number, one in enumerate(known) if not waiting[number]]
        heapq.heapify(ready)
        order: list[int] = []
        while ready:
            late, number = heapq.heappop(ready)
            (leaves if known[number] == ACCUMULATE_GRAD_NR else order).append(number)
            for edge in self.next_edges[number]:
                if edge is None:
                    continue
                waiting[edge.next_node] -= 1
                if not waiting[edge.next_node]:
                    next_one = known[edge.next_node]
                    heapq.heappush(ready, (-next_one if next_one < THREAD_SPAN else late, edge.next_node))
        return order + sorted(leaves)

    def _reorder(self, order: list[int]) -> None:
        """Bring the nodes into another topological order."""
        self._leaf_numbers = None
        places = {number: place for place, number in enumerate(order)}
        edges = [self.next_edges[number] for number in order]
        self._permute(order, [])
        self.next_edges = [
            tuple(edge if edge is None else replace(edge, next_node=places[edge.next_node]) for edge in found)
            for found in edges
        ]

    def _can_be_of_here(self) -> bool:
        """Return whether all nodes can be of one thread, and of this one."""
        numbers = self.sequence_nrs
        num_made = len(numbers) - numbers.count(ACCUMULATE_GRAD_NR)
        if not num_made or not has_sequence_numbers():
            return True
        return numbers[0] < next_sequence_nr() and len(set(numbers)) >= num_made

    def close(self) -> None:
        """Release the wrappers. The walk is empty afterwards."""
        nodes, self.nodes = self.nodes, []
        park_wrappers(nodes)
        self.numbers.clear()

    def leaves(self) -> dict[int, torch.Tensor]:
        """Return the tensors behind the AccumulateGrad nodes, by the number of the node."""
        if not self.nodes:
            return {}
        if self._leaf_numbers is None:
            made = self.sequence_nrs
            self._leaf_numbers = [number for number in range(len(made)) if made[number] == ACCUMULATE_GRAD_NR]
        found = ((number, getattr(self.nodes[number], "variable", None)) for number in self._leaf_numbers)
        return {number: variable for number, variable in found if variable is not None}

    def _find(self, roots: Iterable[Any]) -> list[NextFunctions]:
        """Fill `nodes` in the order of discovery, and return the next functions of each."""
        numbers = self.numbers
        for root in roots:
            numbers.setdefault(root, 0)
        nodes = self.nodes
        nodes.extend(numbers)
        found: list[NextFunctions] = []
        for node in nodes:
            next_functions = node.next_functions
            found.append(next_functions)
            for next_node, _ in next_functions:
                if next_node is not None and next_node not in numbers:
                    numbers[next_node] = 0
                    nodes.append(next_node)
        return found

    def _sort(self, next_functions: list[NextFunctions]) -> None:
        """Sort by creation, latest first; AccumulateGrad last, in the order of discovery."""
        keys = list(map(sequence_nr, self.nodes))
        made = [index for index, key in enumerate(keys) if key != ACCUMULATE_GRAD_NR]
        made.sort(key=keys.__getitem__, reverse=True)
        if len(made) < len(keys):
            made += [index for index, key in enumerate(keys) if key == ACCUMULATE_GRAD_NR]
        self.sequence_nrs = keys
        self._permute(made, next_functions)

    def _permute(self, order: list[int], next_functions: list[NextFunctions]) -> None:
        nodes, keys = self.nodes, self.sequence_nrs
        self.nodes = [nodes[index] for index in order]
        self.sequence_nrs = [keys[index] for index in order]
        if next_functions:
            next_functions[:] = [next_functions[index] for index in order]
        numbers = self.numbers
        for number, node in enumerate(self.nodes):
            numbers[node] = number

    def _make_edges(self, next_functions: list[NextFunctions]) -> bool:
        """Fill `next_edges`; return whether every edge points to a larger number."""
        numbers = self.numbers
        all_edges = []
        for number, places in enumerate(next_functions):
            edges: list[Edge | None] = []
            for next_node, input_nr in places:
                if next_node is None:
                    edges.append(None)
                    continue
                next_number = numbers[next_node]
                if next_number <= number:
                    return False
                edges.append(Edge(next_node=next_number, input_nr=input_nr))
            all_edges.append(tuple(edges))
        self.next_edges = all_edges
        return True

    def _sort_by_edges(self, next_functions: list[NextFunctions]) -> None:
        """Sort by the edges, because sequence numbers of different threads are not comparable."""
        numbers = self.numbers
        waiting = [0] * len(self.nodes)
        for places in next_functions:
            for next_node, _ in places:
                if next_node is not None:
                    waiting[numbers[next_node]] += 1
        ready = [number for number, count in enumerate(waiting) if count == 0]
        order = []
        while ready:
            number = heapq.heappop(ready)  # among the ready ones, keep the previous order: latest first
            order.append(number)
            for next_node, _ in next_functions[number]:
                if next_node is not None:
                    next_number = numbers[next_node]
                    waiting[next_number] -= 1
                    if waiting[next_number] == 0:
                        heapq.heappush(ready, next_number)
        self._permute(order, next_functions)


def _leads_to_newer(number: int, next_number: int) -> bool:
    """Return whether a node leads to one that the same thread made later."""
    is_known = number < UNKNOWN_NR and next_number < UNKNOWN_NR
    return is_known and number // THREAD_SPAN == next_number // THREAD_SPAN and number <= next_number


def walk_like(graph: Graph, roots: Sequence[Any]) -> Walk:
    """Walk a graph again, and give its nodes the numbers that they have in the record of it."""
    walk = Walk(roots)
    if any(node.thread for node in graph.nodes):
        walk.align(graph, roots)
    return walk
