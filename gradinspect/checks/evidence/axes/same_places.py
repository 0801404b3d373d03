"""Tables with an entry for each place of a sequence, of which all places are given the same one.

NOTE [One entry for all places]
An index of positions is made by the program itself, by arange, and no data goes into it. One that has a single value,
as `torch.tensor(length - 1)` or `zeros_like(tokens)` has, gives all places of all sequences the same entry. A kind of
segment may be the same for all tokens, too: such a table has fewer entries than a sequence has places. A table that
data is looked up in as well is one of words, and a value for each example, or one that changes from call to call, is
a time or a class. Where another lookup has an index by arange, the places are told apart.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from msgspec import Struct

from gradinspect.checks.evidence.arguments.given import argument
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.evidence.values.result_states import is_small_and_readable
from gradinspect.checks.facts.axes import SamePlaces
from gradinspect.checks.facts.value_flow import OUTSIDE
from gradinspect.graph import Frame
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.originals import ops

LEAST_CALLS = 3  # of a table
LEAST_LENGTH = 4
MOST_CALLS = 100
MOST_ELEMENTS = 65_536
_SHAPES = frozenset((
    "to", "long", "int", "cpu", "view", "reshape", "unsqueeze", "expand", "expand_as", "repeat", "contiguous", "clone",
))  # fmt: skip
_MAKERS = frozenset(("tensor", "full", "full_like", "zeros", "zeros_like", "ones", "ones_like", "new_full"))


class _Seen(Struct):
    """All lookups in a table."""

    num_entries: int
    width: int
    num_calls: int = 0
    length: int = 0
    value: int = 0
    made: int | None = None
    looked_up: int | None = None
    is_same: bool = True


class SamePlaceLog:
    """Looks at the indices of lookups. NOTE [One entry for all places]."""

    functions = frozenset(("embedding",))

    def __init__(self, flow: Dataflow) -> None:
        """Share the calls that made the indices."""
        self._flow = flow
        self._seen: dict[tuple[int, int], _Seen] = {}
        self._tokens: dict[int, tuple[int, ...]] = {}  # width of the entries -> shape of what was looked up last
        self._has_positions = False

    def note(self, _function: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call that has returned, given the frame that it is on."""
        index: Any = argument(args, kwargs, 0, "input")
        table: Any = argument(args, kwargs, 1, "weight")
        if self._has_positions or type(index) is not torch.Tensor or not isinstance(table, torch.Tensor):
            return
        made, read = self._made(index), self._flow.read(table)
        name = "" if made == OUTSIDE else self._flow.calls[made].name.strip("_")
        if name == "arange":
            self._has_positions = True
            return
        seen = self._seen.setdefault((read.call, read.leaf), _Seen(*table.shape))
        value = self._only_value(index) if seen.is_same and name in _MAKERS else None
        if value is None:
            seen.is_same = False
            if len(index.shape) == 2 and min(index.shape) > 1:
                self._tokens[seen.width] = tuple(index.shape)
        elif seen.num_calls < MOST_CALLS:
            num_examples, length = self._tokens.get(seen.width, (0, 0))
            is_of_examples = num_examples != length and ops.numel(index) == num_examples
            seen.is_same = not is_of_examples and (not seen.num_calls or value in {seen.value, length - 1})
            seen.value, seen.num_calls = value, seen.num_calls + 1
            seen.looked_up, seen.made = number, self._flow.calls[made].frame

    def _made(self, index: torch.Tensor) -> int:
        """Return the call that made the values of an index, before those that shape it."""
        calls, call = self._flow.calls, self._flow.read(index).call
        while call != OUTSIDE and calls[call].name.strip("_") in _SHAPES and calls[call].reads:
            call = calls[call].reads[0].call
        return call

    @staticmethod
    def _only_value(index: torch.Tensor) -> int | None:
        """Return the value that all elements of an index have."""
        if not index.is_cpu or not is_small_and_readable(index, MOST_ELEMENTS):
            return None
        with unobserved():
            value = int(ops.item(ops.max(index)))
            return value if value == int(ops.item(ops.min(index))) else None

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[SamePlaces]:
        """Yield the lines where it was so in every call."""
        for seen in self._seen.values():
            tokens = self._tokens.get(seen.width, (0, 0))
            is_for_places = LEAST_LENGTH <= tokens[1] <= seen.num_entries
            if seen.is_same and seen.num_calls >= LEAST_CALLS and is_for_places and not self._has_positions:
                yield SamePlaces(
                    value=seen.value, num_entries=seen.num_entries, tokens=tokens, num_calls=seen.num_calls,
                    looked_up=frame_of(seen.looked_up), made=frame_of(seen.made),
                )  # fmt: skip
