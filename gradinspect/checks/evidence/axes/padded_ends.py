"""The last step of an RNN, taken of rows that end in padding.

NOTE [Ends that are padding]
`out[:, -1]` of a batch whose rows have unlike lengths is the last step of the longest row; of the others it is what the
RNN has made of padding. It is right where the rows are packed, or were filled up at their beginning, and where another
line takes the steps of the same RNN by their lengths. Padding is the `padding_idx` of the embedding that the RNN is
given, or what has filled up the rows, where there is none.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from msgspec import Struct

from gradinspect.checks.evidence.arguments.given import argument
from gradinspect.checks.evidence.arguments.recurrent_axes import RECURRENT, is_padded, made_by, places_of
from gradinspect.checks.evidence.targets.filled_rows import filled_rows
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.value_flow import OUTSIDE
from gradinspect.checks.facts.values import PaddedEnds
from gradinspect.graph import Frame
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.originals import ops

LEAST_CALLS = 2  # of a line
MOST_CALLS = 60  # of embeddings that are looked at
LEAST_SHARE = 0.25  # of the rows that end in padding
_MOST_ELEMENTS = 1_000_000  # of a batch of ids


class _Ends(NamedTuple):
    """How many rows of a batch end in padding, along each of its two axes."""

    padding: int
    num_padded: tuple[int, int]  # of the rows along axis 0, and along axis 1


class _Run(NamedTuple):
    """A call of an RNN that was given padded rows."""

    function: str
    time: int  # the axis
    shape: tuple[int, ...]  # of its first two axes, which its last state does not have
    frame: int | None
    ends: _Ends


class _Seen(Struct):
    """All calls on a line that takes a step."""

    run: _Run
    num_calls: int = 0
    num_rows: int = 0
    num_padded: int = 0


class PaddedEndLog:
    """Looks at what is taken out of the results of RNNs. NOTE [Ends that are padding]."""

    functions = frozenset(RECURRENT) | frozenset(("embedding", "getitem", "select", "gather", "index_select"))

    def __init__(self, flow: Dataflow) -> None:
        """Share the calls that made them."""
        self._flow = flow
        self._num_looked_up = 0
        self._embedded: dict[int, _Ends] = {}  # by call
        self._runs: dict[int, _Run] = {}  # by call
        self._seen: dict[int | None, _Seen] = {}
        self._knowing: set[int | None] = set()  # frames of RNNs of which other steps are taken

    def note(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call that has returned, given the frame that it is on."""
        if function == "embedding":
            self._look_up(args, kwargs)
        elif function in RECURRENT:
            if self._embedded and is_padded(args):
                self._run(function, args, number)
        elif self._runs and args and type(args[0]) is torch.Tensor and len(args[0].shape) == 3:
            self._take(function, args, kwargs, number)

    def _look_up(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        ids, weight = argument(args, kwargs, 0, "input"), argument(args, kwargs, 1, "weight")
        index = argument(args, kwargs, 2, "padding_idx")
        is_batch = type(ids) is torch.Tensor and ids.is_cpu and len(ids.shape) == 2 and min(ids.shape) > 1
        if not is_batch or self._num_looked_up >= MOST_CALLS or ops.numel(ids) > _MOST_ELEMENTS:
            return
        self._num_looked_up += 1
        if type(index) is int and index < 0 and isinstance(weight, torch.Tensor):
            index += weight.shape[0]
        with unobserved():
            ends = _ends_of(ids, index if type(index) is int and index >= 0 else None)
        if ends is not None:
            self._embedded[len(self._flow.calls)] = ends

    def _run(self, function: str, args: Sequence[Any], number: int | None) -> None:
        call = made_by(self._flow, args[0], self._embedded)
        if call != OUTSIDE:
            time, shape = int(args[-1] is True), args[0].shape[:2]
            self._runs[len(self._flow.calls)] = _Run(function, time, shape, number, self._embedded[call])

    def _take(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        given = args[0]
        call = made_by(self._flow, given, self._runs) if given.requires_grad else OUTSIDE
        if call == OUTSIDE:
            return
        run = self._runs[call]
        if given.shape[:2] != run.shape:
            return
        if not _takes_last(places_of(function, args, kwargs), run.time, given.shape[run.time]):
            self._knowing.add(run.frame)
            return
        seen = self._seen.setdefault(number, _Seen(run))
        seen.num_calls += 1
        seen.num_rows += given.shape[1 - run.time]
        seen.num_padded += run.ends.num_padded[run.time]

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[PaddedEnds]:
        """Yield the lines that take the last step of rows of which many end in padding."""
        for number, seen in self._seen.items():
            run = seen.run
            is_often = seen.num_calls >= LEAST_CALLS and seen.num_padded >= LEAST_SHARE * seen.num_rows
            if is_often and run.frame not in self._knowing:
                yield PaddedEnds(
                    op=RECURRENT[run.function],
                    padding=run.ends.padding,
                    is_batch_first=run.time == 1,
                    num_padded=seen.num_padded,
                    num_rows=seen.num_rows,
                    ran=frame_of(run.frame),
                    used=frame_of(number),
                )


def _ends_of(ids: torch.Tensor, index: int | None) -> _Ends | None:
    """Count the rows that end in padding; None where none begins with a token and ends in padding."""
    if index is None:
        filled = filled_rows(ids)
        index = None if filled is None else filled.filler
    if index is None:
        return None
    is_padding = ops.eq(ids, index)
    counts = tuple(
        int(ops.item(ops.sum(ops.logical_and(
            ops.select(is_padding, along, -1), ops.logical_not(ops.select(is_padding, along, 0))
        ))))
        for along in (0, 1)
    )  # fmt: skip
    return _Ends(index, (counts[0], counts[1])) if any(counts) else None


def _takes_last(places: tuple[Any, ...], time: int, num_steps: int) -> bool:
    """Return whether the last step is taken, of all rows."""
    first, second = (*places, None, None)[:2]
    rows, step = (first, second) if time == 1 else (second, first)
    is_whole = rows is None or (isinstance(rows, slice) and rows == slice(None))
    return is_whole and type(step) is int and step in {-1, num_steps - 1}
