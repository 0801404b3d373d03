"""Inputs and targets that were put into orders which were drawn apart, so that no example has its own target.

NOTE [Drawn apart on purpose]
`x[torch.randperm(n)]` and `y[torch.randperm(n)]` are two orders. A mixture of examples, and negatives of another
example, are permuted too, but they share a draw with what they stand beside, or that is not permuted at all. So two
orders of one length count where all of the one side is in the one and all of the other side in the other, besides an
order that both have.

NOTE [Two loaders]
A DataLoader that shuffles draws a permutation too, but takes it to Python, so nothing leads from a batch to it. But the
function that puts a batch together is called by the loader, and the draw is the sampler's: both are on the stack.
Two loaders with generators of one seed draw the same order, so what counts is the state that a draw leaves. A batch of
another loader that went through a network, such as that of a style, is no target of the examples: only what changes
each value alone may come between a loader and a target.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

import torch
from msgspec import Struct
from torch.utils.data import dataloader, sampler

from gradinspect.checks.evidence.arguments.given import argument
from gradinspect.checks.evidence.objectives.regressions import LOSSES_OF_TARGETS
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.targets import TwoOrders
from gradinspect.checks.facts.value_flow import OUTSIDE, ancestors
from gradinspect.graph import Frame
from gradinspect.recording.names.variables import local_variables
from gradinspect.torch_api.data.loaders import sampler_of
from gradinspect.torch_api.patching.originals import ops

LEAST_CALLS = 3  # of a line
MOST_CALLS = 6
_JOINS = frozenset(("stack", "tensor", "as_tensor", "cat"))  # what a function that puts batches together calls
EACH_ALONE = _JOINS | frozenset((
    "getitem", "to", "float", "double", "half", "long", "int", "view", "reshape", "squeeze", "unsqueeze", "flatten",
    "transpose", "permute", "contiguous", "mul", "div", "truediv", "true_divide", "sub", "add", "rsub", "one_hot",
    "cuda", "clone", "detach", "type", "unbind", "select",
))  # fmt: skip
_FEW_FRAMES = 12  # from a call in a collating function to the loader


class _Seen(Struct):
    """All calls of a loss on a line."""

    length: int = 0
    num_calls: int = 0
    first: int | None = None
    second: int | None = None
    are_apart: bool = True
    are_loaders: bool = False
    loaders: tuple[int, ...] = ()  # the frames that made them


class OrderLog:
    """Looks at permutations. NOTE [Drawn apart on purpose]."""

    functions = _JOINS | LOSSES_OF_TARGETS | frozenset(("randperm", "sub"))

    def __init__(self, flow: Dataflow) -> None:
        """Share the calls that made inputs and targets."""
        self._flow = flow
        self._lengths: dict[int, int] = {}  # of the permutations, by their calls
        self._states: dict[int, int] = {}  # that samplers' draws have left their generators in, by the same
        self._drawn: dict[int, int] = {}  # the last draw of each sampler, by its id
        self._loaders: dict[int, int] = {}  # the frames that made the loaders, by their draws
        self._batches: dict[int, int] = {}  # by the call that made a batch: the draw that has ordered it
        self._seen: dict[int | None, _Seen] = {}

    def note(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call that has returned, given the frame that it is on."""
        if function == "randperm":
            self._draw(args, kwargs, number)
            return
        if function in _JOINS:
            if self._drawn:
                self._collate()
            return
        target = argument(args, kwargs, 1, "target")
        if len(self._lengths) < 2 or type(target) is not torch.Tensor or target.requires_grad:
            return
        seen = self._seen.setdefault(number, _Seen())
        scores = argument(args, kwargs, 0, "input")
        if not seen.are_apart or seen.num_calls >= MOST_CALLS or type(scores) is not torch.Tensor:
            return
        seen.num_calls += 1
        mine, its = (self._orders(one) for one in (scores, target))
        own, other = mine - its, its - mine  # without what has ordered both, as a loader that shuffles has
        seen.are_apart = len(own) == len(other) == 1
        if seen.are_apart:
            (first,), (second,) = own, other
            seen.are_loaders = first in self._states and second in self._states
            seen.are_apart = self._are_apart(first, second, target) and (seen.are_loaders or function != "sub")
            seen.loaders = tuple(self._loaders[one] for one in (first, second) if one in self._loaders)
            seen.length = self._lengths[first]
            seen.first, seen.second = self._flow.calls[first].frame, self._flow.calls[second].frame

    def _draw(self, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        length = argument(args, kwargs, 0, "n")
        if type(length) is not int or number is None:
            return
        call = len(self._flow.calls)
        self._lengths[call] = length
        frame = _frame_of(sampler.__file__, sys._getframe(2))
        drawing = None if frame is None else local_variables(frame).get("self")
        generator = kwargs.get("generator")
        if drawing is not None and isinstance(generator, torch.Generator):
            self._drawn[id(drawing)] = call
            self._states[call] = hash(tuple(ops.tolist(generator.get_state())))

    def _collate(self) -> None:
        """Note what orders a batch that a loader puts together. NOTE [Two loaders]."""
        frame = _frame_of(dataloader.__file__, sys._getframe(2))
        loader = None if frame is None else local_variables(frame).get("self")
        drawn = self._drawn.get(id(sampler_of(loader)))
        if drawn is not None:
            made = self._flow.origins.of(self._flow.origins.loader_of(loader))
            if made is not None:
                self._loaders[drawn] = made
            self._batches[len(self._flow.calls)] = drawn

    def _orders(self, tensor: torch.Tensor) -> set[int]:
        """Return the permutations behind a tensor by which something was indexed."""
        made = self._flow.read(tensor).call
        behind = ancestors(self._flow.calls, made, stops_at_leaves=True) if made != OUTSIDE else set()
        return (behind & self._lengths.keys()) | {self._batches[one] for one in behind & self._batches.keys()}

    def _is_plain(self, tensor: torch.Tensor) -> bool:
        """Return whether the values of a target are those of a loader, each changed alone."""
        calls, made = self._flow.calls, self._flow.read(tensor).call
        todo, seen = [made], {OUTSIDE}
        while todo:
            one = todo.pop()
            if one in seen or one in self._batches:
                continue
            seen.add(one)
            if calls[one].name.strip("_") not in EACH_ALONE:
                return False
            todo += [read.call for read in calls[one].reads]
        return True

    def _are_apart(self, first: int, second: int, target: torch.Tensor) -> bool:
        """Return whether two draws are of one length, and different ones if samplers have made them."""
        if not self._lengths[first] == self._lengths[second] > 1:
            return False
        one, other = self._states.get(first), self._states.get(second)
        return (one is None and other is None) or (one != other and self._is_plain(target))

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[TwoOrders]:
        """Yield the lines where it was so in every call."""
        for number, seen in self._seen.items():
            if seen.are_apart and seen.num_calls >= LEAST_CALLS:
                yield TwoOrders(
                    length=seen.length, num_calls=seen.num_calls, first=frame_of(seen.first),
                    second=frame_of(seen.second), used=frame_of(number), are_loaders=seen.are_loaders,
                    loaders=tuple(made for one in seen.loaders if (made := frame_of(one)) is not None),
                )  # fmt: skip


def _frame_of(file: str, frame: FrameType | None) -> FrameType | None:
    """Return the innermost of a few frames that runs code of a file."""
    for _ in range(_FEW_FRAMES):
        if frame is None or frame.f_code.co_filename == file:
            return frame
        frame = frame.f_back
    return None
