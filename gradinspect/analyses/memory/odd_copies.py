"""The copy of a repeated block whose bytes are far from those of the others: `h.7: 3.1 times the others' bytes`.

What comes in: a graph, the bytes that its nodes hold, and repeats of its folding. What goes out: words for each.
"""

from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate

from gradinspect.analyses.memory.saved_storages import savers_of_storages
from gradinspect.analyses.structure.call_names import name_of_call
from gradinspect.analyses.structure.copy_ranges import copy_ranges
from gradinspect.analyses.structure.folding import Scope, place_of_call
from gradinspect.analyses.structure.name_folding import format_times, odd_one
from gradinspect.graph import Graph, ModuleCall
from gradinspect.units import format_bytes


class OddCopies:
    """Names the odd ones of one graph."""

    def __init__(self, graph: Graph, held: Sequence[int]) -> None:
        """Prepare for a graph, and what each of its nodes holds, from `held_bytes_by_node`."""
        self._graph = graph
        self._before = list(accumulate(held, initial=0))

    def words(self, scope: Scope) -> str:
        """Say how far one copy is from the others, or what it counts for them as it saves it first; "" if none is."""
        copies = copy_ranges(scope) if scope.copies else []
        sizes = [self._before[copy.stop] - self._before[copy.start] for copy in copies]
        found = odd_one(sizes)
        if found is None:
            return ""
        shared = self._shared(copies)
        odd = odd_one([size - counted for size, counted in zip(sizes, shared, strict=True)])
        if odd is None:
            return f"{self._name(scope, found[0])}: counts {format_bytes(shared[found[0]])} that others save too"
        return f"{self._name(scope, odd[0])}: {format_times(odd[1])} the others' bytes"

    def _shared(self, copies: Sequence[range]) -> list[int]:
        """Return for each copy the bytes that it counts for later ones too, as it is the first to save them."""
        shared = [0] * len(copies)
        for first, last, num_bytes in self._savers:
            place = (first - copies[0].start) // len(copies[0])
            if 0 <= place < len(copies) and last >= copies[place].stop:
                shared[place] += num_bytes
        return shared

    @cached_property
    def _savers(self) -> list[tuple[int, int, int]]:
        """The storages that are held: who saves each first and last, and its bytes."""
        return list(savers_of_storages(self._graph))

    def _name(self, scope: Scope, copy: int) -> str:
        """Name a copy by its only module call, by the number that all calls in it have, or by its place."""
        calls, others = self._calls(scope, copy), self._calls(scope, 0 if copy else 1)
        if place_of_call(scope) is not None:
            return name_of_call(self._graph, calls[0])
        numbers = {call.call for call in calls}
        is_same = [call.path for call in calls] == [call.path for call in others]  # called again, as in a loop
        return f"call {numbers.pop():,}" if is_same and len(numbers) == 1 else f"copy {copy + 1:,}"

    def _calls(self, scope: Scope, copy: int) -> list[ModuleCall]:
        """Return the module calls that a copy is made of."""
        body = (scope.items, *scope.copies)[copy]
        modules = [item.module for item in body if isinstance(item, Scope) and item.module is not None]
        return [self._graph.modules[module] for module in modules]
