"""The last place of an axis of what an RNN returned, or a mean over it, where that axis is its batch and not its time.

NOTE [The last sequence on purpose]
Without `batch_first` an RNN takes axis 0 for time and axis 1 for the batch, so `out[:, -1]` is the last sequence, and
not the last step of each; `out.mean(1)` is a mean over sequences. It is meant where the batch has one sequence only,
where others are taken on the same axis, as in a loop over all, or where a step is taken on axis 0 as well: then the
program knows which is which.
"""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any

import torch
from msgspec import Struct

from gradinspect.checks.evidence.arguments.given import argument
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.value_flow import NO_LEAF, OUTSIDE
from gradinspect.checks.facts.values import LastAlongBatch
from gradinspect.graph import Frame
from gradinspect.torch_api.patching.classes import is_one_of

LEAST_CALLS = 2  # of a line
RECURRENT = {"lstm": "LSTM", "gru": "GRU", "rnn_tanh": "RNN", "rnn_relu": "RNN"}
_SAME_AXES = frozenset((
    "dropout", "relu", "tanh", "gelu", "layer_norm", "contiguous", "float", "to", "add", "mul", "leaky_relu", "sigmoid",
))  # fmt: skip
_OVER_AXIS = frozenset(("mean", "sum", "max", "amax"))
_MAX_STEPS = 6  # from what is indexed back to the RNN
_NUM_ARGUMENTS = 9  # of an RNN that is not given a packed sequence


class _Seen(Struct):
    """All calls on a line."""

    op: str
    ran: int | None  # the frame of the call of the RNN
    shape: tuple[int, int]  # steps and sequences, the first time
    how: str  # "last", or a function over the axis
    num_calls: int = 0
    is_last: bool = True  # in each call


class RecurrentAxisLog:
    """Looks at what is taken out of the results of RNNs. NOTE [The last sequence on purpose]."""

    functions = frozenset(RECURRENT) | frozenset(("getitem", "select")) | _OVER_AXIS

    def __init__(self, flow: Dataflow) -> None:
        """Share the calls that made them."""
        self._flow = flow
        self._by_time: dict[int, tuple[str, int]] = {}  # calls whose axis 0 is time -> the function, its steps
        self._seen: dict[int | None, _Seen] = {}
        self._knowing: set[int | None] = set()  # frames of RNNs of which a step, or another sequence, is taken

    def note(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call that has returned, given the frame that it is on."""
        if function in RECURRENT:
            if takes_time_first(args):
                self._by_time[len(self._flow.calls)] = function, args[0].shape[0]
        elif self._by_time and args and type(args[0]) is torch.Tensor and len(args[0].shape) == 3:
            self._take(args[0], places_of(function, args, kwargs), number)

    def _take(self, given: torch.Tensor, places: tuple[Any, ...], number: int | None) -> None:
        call = made_by(self._flow, given, self._by_time) if given.requires_grad else OUTSIDE
        if call == OUTSIDE:
            return
        (function, steps), ran = self._by_time[call], self._flow.calls[call].frame
        first, second = (*places, None, None)[:2]
        if given.shape[0] != steps or type(first) is int:
            self._knowing |= {ran} if type(first) is int else set()
            return
        if not is_one_of(second, (int, str)):
            return
        sequences, how = given.shape[1], second if type(second) is str else "last"
        seen = self._seen.setdefault(number, _Seen(RECURRENT[function], ran, (steps, sequences), how))
        seen.num_calls += 1
        is_whole = isinstance(first, slice) and first == slice(None)
        seen.is_last = seen.is_last and is_whole and sequences > 1 and second in {-1, sequences - 1, *_OVER_AXIS}
        if not seen.is_last:
            self._knowing.add(ran)

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[LastAlongBatch]:
        """Yield the lines that take the last sequence in every call."""
        for number, seen in self._seen.items():
            if seen.is_last and seen.num_calls >= LEAST_CALLS and seen.ran not in self._knowing:
                yield LastAlongBatch(
                    op=seen.op, how=seen.how, shape=seen.shape, layer=frame_of(self._made(seen)),
                    ran=frame_of(seen.ran), used=frame_of(number),
                )  # fmt: skip

    def _made(self, seen: _Seen) -> int | None:
        """Return the frame that made the RNN."""
        functions = (name for name, op in RECURRENT.items() if op == seen.op)
        made = (self._flow.origins.of_line(seen.ran, name) for name in functions)
        return next((one for one in made if one is not None), None)


def made_by(flow: Dataflow, given: torch.Tensor, known: Container[int]) -> int:
    """Return which of some calls made a tensor, perhaps by way of what keeps its axes; OUTSIDE: none."""
    calls, call = flow.calls, flow.read(given).call
    for _ in range(_MAX_STEPS):
        if call == OUTSIDE or call in known:
            return call
        behind = [read.call for read in calls[call].reads if read.leads_back and read.leaf == NO_LEAF]
        if calls[call].name.strip("_") not in _SAME_AXES or len(behind) != 1:
            return OUTSIDE
        call = behind[0]
    return OUTSIDE


def takes_time_first(args: Sequence[Any]) -> bool:
    """Return whether an RNN is given a padded batch, and was made without batch_first."""
    return is_padded(args) and args[-1] is False


def is_padded(args: Sequence[Any]) -> bool:
    """Return whether an RNN is given a padded batch: a packed one brings its sizes, and leaves out batch_first."""
    return len(args) == _NUM_ARGUMENTS and type(args[3]) is bool


def places_of(function: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what is taken on each axis; nothing if that is not known."""
    if function == "getitem":
        index = args[1] if len(args) > 1 else None
        return index if isinstance(index, tuple) else (index,)
    axis, place = argument(args, kwargs, 1, "dim"), kwargs.get("index", args[-1])
    if function in _OVER_AXIS:
        axes = axis if isinstance(axis, tuple | list) else (axis,)
        place = 0 if len(axes) > 1 else function  # a number on axis 0 shows that the program knows its axes
        axis = 0 if len(axes) > 1 else axes[0]
    if type(axis) is not int:
        return ()
    first = (place if type(place) is int else 0,)
    return {0: first, -3: first, 1: (slice(None), place), -2: (slice(None), place)}.get(axis, ())
