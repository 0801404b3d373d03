"""RNNs and attentions that run along the examples of a batch, as they were made without batch_first.

NOTE [Axis 0 is the batch]
What a shape calls its axes is not known, but where a batch was put together is: a DataLoader that shuffles stacks
its samples along axis 0, and so does an index that was drawn, `x[order[a:b]]`. From there on, only what leaves axis 0
where it is is followed. Samples in a given order may be the steps of one sequence, so they say nothing; a batch of
sequences with one step each neither, as an attention over examples may be meant there.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from msgspec import Struct
from torch.utils.data import RandomSampler, SubsetRandomSampler, WeightedRandomSampler

from gradinspect.checks.evidence.arguments.given import argument
from gradinspect.checks.evidence.arguments.recurrent_axes import RECURRENT, takes_time_first
from gradinspect.checks.evidence.lines.made_objects import iterator_in
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.axes import RunsAlongBatch
from gradinspect.checks.facts.value_flow import NO_LEAF, OUTSIDE, ancestors
from gradinspect.graph import Frame
from gradinspect.torch_api.data.loaders import sampler_of

LEAST_CALLS = 2  # of a line
_ATTENTION = "multi_head_attention_forward"
_DRAWS = frozenset(("randperm", "randint"))
_SHUFFLING = (RandomSampler, SubsetRandomSampler, WeightedRandomSampler)
_FIRST_STAYS = frozenset((
    "embedding", "linear", "dropout", "layer_norm", "relu", "gelu", "tanh", "silu", "sigmoid", "leaky_relu", "elu",
    "contiguous", "float", "to", "clone", "detach", "cuda", "double", "long",
    "add", "mul", "sub", "div", "truediv", "iadd",  # with what has no more axes, as the number of rows shows in the end
    _ATTENTION, *RECURRENT,
))  # fmt: skip
_MOVES = frozenset(("getitem", "unsqueeze", "view", "reshape"))  # these may leave it where it is
_MOST_STEPS = 60  # from an RNN back to the batch


class _Seen(Struct):
    """All calls on a line."""

    op: str
    function: str
    shape: tuple[int, int] = (0, 0)
    batch: int = OUTSIDE  # the call that put it together
    num_calls: int = 0
    is_along: bool = True


class ExampleAxisLog:
    """Looks at what RNNs and attentions are given. NOTE [Axis 0 is the batch]."""

    functions = frozenset((*RECURRENT, _ATTENTION, "stack")) | _DRAWS | _MOVES

    def __init__(self, flow: Dataflow) -> None:
        """Share the calls that made batches."""
        self._flow = flow
        self._draws: set[int] = set()
        self._batches: dict[int, int] = {}  # calls that put examples together along axis 0 -> how many
        self._staying: set[int] = set()  # calls that leave axis 0 of their first argument where it is
        self._seen: dict[int | None, _Seen] = {}

    def note(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call that has returned, given the frame that it is on."""
        place = len(self._flow.calls)
        if function in _DRAWS:
            self._draws.add(place)
        elif function == "stack":
            if argument(args, kwargs, 1, "dim") in {None, 0} and _is_shuffled(sys._getframe(1)):
                self._batches[place] = len(argument(args, kwargs, 0, "tensors"))
        elif function in _MOVES:
            self._move(function, args, kwargs, place)
        elif self._batches:
            self._run(function, args, kwargs, number)

    def _move(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any], place: int) -> None:
        if function == "getitem" and len(args) > 1 and type(args[1]) is torch.Tensor:
            if len(args[1].shape) == 1 and self._is_drawn(args[1]):
                self._batches[place] = args[1].shape[0]
        elif self._batches and args and type(args[0]) is torch.Tensor and _stays(function, args, kwargs):
            self._staying.add(place)

    def _is_drawn(self, index: torch.Tensor) -> bool:
        made = self._flow.read(index).call
        return made != OUTSIDE and not self._draws.isdisjoint(ancestors(self._flow.calls, made))

    def _run(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        is_attention = function == _ATTENTION
        given = argument(args, kwargs, 0, "query")
        if not is_attention and not takes_time_first(args):
            return
        if type(given) is not torch.Tensor or len(given.shape) != 3:
            return
        if is_attention and not self._is_of_itself(given, argument(args, kwargs, 1, "key")):
            return
        seen = self._seen.setdefault(number, _Seen(RECURRENT.get(function, ""), function))
        seen.num_calls += 1
        seen.shape = given.shape[0], given.shape[1]
        seen.batch = self._batch(given)
        seen.is_along = seen.is_along and self._batches.get(seen.batch) == given.shape[0] and given.shape[1] > 1

    def _is_of_itself(self, query: torch.Tensor, key: Any) -> bool:
        is_tensor = type(key) is torch.Tensor and key.shape == query.shape
        return is_tensor and self._batch(key) == self._batch(query)

    def _batch(self, given: torch.Tensor) -> int:
        """Return the call that put together the batch along axis 0 of a tensor; OUTSIDE if that is not known."""
        calls, call = self._flow.calls, self._flow.read(given).call
        for _ in range(_MOST_STEPS):
            if call == OUTSIDE or call in self._batches:
                return call
            one = calls[call]
            if (call not in self._staying and one.name.strip("_") not in _FIRST_STAYS) or not one.reads:
                return OUTSIDE
            call = OUTSIDE if one.reads[0].leaf != NO_LEAF else one.reads[0].call
        return OUTSIDE

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[RunsAlongBatch]:
        """Yield the lines where it was so in every call, each once, however many lines lead there."""
        known: set[Frame | None] = set()
        for number, seen in self._seen.items():
            ran = frame_of(number)
            if seen.is_along and seen.num_calls >= LEAST_CALLS and (ran is None or ran not in known):
                known.add(ran)
                made = self._flow.calls[seen.batch]
                yield RunsAlongBatch(
                    op=seen.op, shape=seen.shape, num_calls=seen.num_calls, is_loaded=made.name == "stack",
                    layer=frame_of(self._flow.origins.of_line(number, seen.function)),
                    batch=frame_of(made.frame), ran=ran,
                )  # fmt: skip


def _is_shuffled(frame: Any) -> bool:
    """Return whether a loader that draws the order of its examples is making a batch."""
    iterator = iterator_in(frame)
    return iterator is not None and type(sampler_of(iterator)) in _SHUFFLING


def _stays(function: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Return whether a call leaves axis 0 of its first argument where it is."""
    first: torch.Tensor = args[0]
    if function == "unsqueeze":
        axis = argument(args, kwargs, 1, "dim")
        return type(axis) is int and axis not in {0, -1 - len(first.shape)}
    if function == "getitem":
        index = args[1] if len(args) > 1 else None
        return isinstance(index, tuple) and len(index) > 0 and (index[0] is ... or _is_all(index[0]))
    sizes = args[1] if len(args) > 1 and isinstance(args[1], tuple | list) else args[1:]
    return len(sizes) > 0 and type(sizes[0]) is int and sizes[0] == first.shape[0]


def _is_all(index: Any) -> bool:
    return isinstance(index, slice) and index == slice(None)
