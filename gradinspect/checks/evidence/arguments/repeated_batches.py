"""Lines that draw the first batch of a DataLoader again and again, which is the same each time.

NOTE [The first batch again]
`next(iter(loader))` begins anew. Without shuffling that gives the same batch in each step, and the rest of the data is
never seen. Outside of a loop it is one batch, on purpose; a validation may look at the same batch each time, without a
graph. So a line counts that has drawn the first batch several times and no other, if there are others, and if a call
with a graph has read it.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from weakref import ReferenceType, ref

from msgspec import Struct

from gradinspect.checks.evidence.lines.made_objects import iterator_in
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.values import RepeatedBatch
from gradinspect.graph import Frame
from gradinspect.torch_api.data.loaders import batch_place

LEAST_TIMES = 5
MOST_CALLS = 2_000  # after one that stacks samples, among which its readers are looked for


class _Seen(Struct):
    """What a line has drawn."""

    num_batches: int
    num_first: int = 0
    has_others: bool = False
    iterator: "ReferenceType[Any] | None" = None  # the last
    calls: tuple[int, ...] = ()  # that stacked samples of the first of these batches


class RepeatedBatchLog:
    """Looks at what stacks samples. NOTE [The first batch again]."""

    functions = frozenset(("stack",))

    def __init__(self, flow: Dataflow) -> None:
        """Share the calls that have read the batches."""
        self._flow = flow
        self._seen: dict[int, _Seen] = {}

    def note(self, _function: str, _args: Sequence[Any], _kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at what becomes a batch, given the frame that draws it."""
        iterator = None if number is None else iterator_in(sys._getframe(1))
        place = None if iterator is None else batch_place(iterator)
        if number is None or place is None:
            return
        seen = self._seen.setdefault(number, _Seen(place.num_batches))
        seen.has_others = seen.has_others or place.number > 0 or place.num_batches < 2
        if seen.iterator is None or seen.iterator() is not iterator:
            seen.num_first, seen.iterator = seen.num_first + 1, ref(iterator)
            seen.calls = (*seen.calls, len(self._flow.calls))[:LEAST_TIMES]

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[RepeatedBatch]:
        """Yield the lines that have drawn nothing but first batches."""
        for number, seen in self._seen.items():
            if seen.num_first >= LEAST_TIMES and not seen.has_others and any(map(self._is_learned_from, seen.calls)):
                drawn = frame_of(number)
                if drawn is not None and "next(" in drawn.code and "iter(" in drawn.code:
                    yield RepeatedBatch(num_times=seen.num_first, num_batches=seen.num_batches, drawn=drawn)

    def _is_learned_from(self, call: int) -> bool:
        """Return whether a call with a graph has read what a call made."""
        made = {call}
        for number, later in enumerate(self._flow.calls[call + 1 : call + MOST_CALLS], call + 1):
            if any(read.call in made for read in later.reads):
                made.add(number)
                if not later.is_off and any(read.is_live for read in later.reads):
                    return True
        return False
