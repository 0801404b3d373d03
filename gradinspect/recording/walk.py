"""Find all nodes from the roots, iteratively, in topological order, with their edges."""

import heapq
from collections.abc import Iterable
from typing import Any, TypeAlias

import torch

from gradinspect.graph import Edge
from gradinspect.recording.release import park_wrappers
from gradinspect.torch_api.nodes import ACCUMULATE_GRAD_NR, sequence_nr

NextFunctions: TypeAlias = tuple[tuple[Any, int], ...]


class Walk:
    """The live nodes of one graph, in topological order, root side first.

    Holds a wrapper of every node, so that identities stay valid while they are read. Close it as soon as the record is
    made; see NOTE [Walked graphs are freed recursively] in `release`.

    Attributes:
        nodes: The live nodes.
        numbers: Live node -> its index in `nodes`.
        sequence_nrs: For each node its order of creation, per thread.
        next_edges: For each node the record of its `next_functions`.
        is_in_creation_order: Whether the sequence numbers alone gave the order; not if several threads made nodes.
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
