"""Tables of positions whose entries are added along the axis that an attention takes for the batch.

NOTE [Positions of examples]
A table of shape [length, 1, features] is written for batches whose first axis is time. Sliced by `x.size(0)` of a
batch whose first axis is the batch, it gives each example its own entry, and all places of a sequence the same: an
attention cannot tell them apart. A condition of each example, `embedded[:, None]`, is no part of a table. Which axis
is which is known from the attention that follows.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from msgspec import Struct

from gradinspect.checks.evidence.arguments.given import argument
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.axes import BatchPositions
from gradinspect.checks.facts.value_flow import OUTSIDE
from gradinspect.graph import Frame
from gradinspect.recording.values.storages import storage_of
from gradinspect.torch_api.patching.originals import ops

LEAST_CALLS = 2  # of a line
_ADDS = frozenset(("add", "radd", "iadd"))
_ATTENTIONS = frozenset(("multi_head_attention_forward", "scaled_dot_product_attention"))
_SLICES = frozenset(("getitem", "narrow"))


class _Seen(Struct):
    """All additions on a line."""

    shape: tuple[int, ...] = ()
    table: tuple[int, ...] = ()
    used: int | None = None
    num_calls: int = 0
    is_by_batch: bool = True


class PositionLog:
    """Looks at what is added before an attention. NOTE [Positions of examples]."""

    functions = _ADDS | _ATTENTIONS

    def __init__(self, flow: Dataflow) -> None:
        """Share the calls that made the entries."""
        self._flow = flow
        self._added: dict[int | None, tuple[tuple[int, ...], tuple[int, ...]]] = {}  # since the last attention
        self._seen: dict[int | None, _Seen] = {}

    def note(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call that has returned, given the frame that it is on."""
        if function in _ATTENTIONS:
            if self._added:
                self._attend(function, argument(args, kwargs, 0, "query"), number)
        elif len(args) == 2 and type(args[0]) is torch.Tensor and isinstance(args[1], torch.Tensor):
            x, table = args if args[0].shape[1:2] != (1,) else args[::-1]
            if self._is_sliced_by_first_axis(x, table):
                self._added[number] = tuple(x.shape), tuple(table.shape)

    def _is_sliced_by_first_axis(self, x: torch.Tensor, table: torch.Tensor) -> bool:
        first, other = tuple(x.shape), tuple(table.shape)
        if len(first) != 3 or len(other) != 3 or other != (first[0], 1, first[2]) or 1 in first[:2]:
            return False
        made = self._flow.read(table).call
        memory = storage_of(table)
        if memory is None or not ops.is_contiguous(table) or memory.nbytes() <= ops.numel(table) * table.itemsize:
            return False  # values of each example, which were given an axis, or one place of a batch
        return made != OUTSIDE and self._flow.calls[made].name.strip("_") in _SLICES

    def _attend(self, function: str, query: Any, number: int | None) -> None:
        """Compare what was added with the axes that an attention takes for sequences and batch."""
        shape = tuple(query.shape) if isinstance(query, torch.Tensor) else ()
        is_whole = function == "multi_head_attention_forward"
        if len(shape) != (3 if is_whole else 4):
            return
        length, batch = shape[:2] if is_whole else (shape[2], shape[0])
        for line, (x, table) in self._added.items():
            seen = self._seen.setdefault(line, _Seen())
            seen.num_calls += 1
            seen.shape, seen.table, seen.used = x, table, number
            seen.is_by_batch = seen.is_by_batch and x[:2] == (batch, length) and batch != length
        self._added.clear()

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[BatchPositions]:
        """Yield the lines where it was so in every call."""
        for number, seen in self._seen.items():
            if seen.is_by_batch and seen.num_calls >= LEAST_CALLS:
                yield BatchPositions(
                    shape=seen.shape, table=seen.table, num_calls=seen.num_calls, added=frame_of(number),
                    used=frame_of(seen.used),
                )  # fmt: skip
