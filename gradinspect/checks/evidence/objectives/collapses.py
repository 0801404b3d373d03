"""Losses that one output for all inputs makes as small as they can be.

NOTE [Only similarities]
A loss that only makes two outputs of the same layers alike is smallest if these layers return the same for every input.
Each of the usual ways out shows in the calls: one side has no graph, as in SimSiam, BYOL and with a teacher; there are
other terms, as of the variance, or the similarities go into a cross entropy or a hinge, as with negative examples; the
two sides are of other layers. A single tensor that both sides have, as the direction of a projection, cannot do it: it
takes a bias. Other backward calls may keep the outputs apart as well, so it counts where all of the program are so.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from msgspec import Struct

from gradinspect.checks.evidence.objectives.regressions import PRODUCTS, SAME_VALUES, leaves_behind, made_by
from gradinspect.checks.evidence.targets.signs import maximizes
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.objectives import CollapsedOutputs
from gradinspect.checks.facts.value_flow import OUTSIDE, Call, Read, all_behind
from gradinspect.graph import Frame
from gradinspect.recording.names.instances import live_optimizers

LEAST_CALLS = 3
MOST_CALLS = 20
LEAST_SHARED = 2  # parameters, such as a weight and a bias
_TURNS = {"neg": (0,), "negative": (0,), "rsub": (0,), "sub": (1,), "subtract": (1,)}  # the places of what is negated
_PASSES = PRODUCTS | SAME_VALUES - {"detach"} | frozenset((
    "div", "truediv", "true_divide", "multiply", "mean", "sum", "add", "radd", "iadd", "stack", "cat", "getitem",
))  # fmt: skip
_SIMILARITIES = frozenset(("cosine_similarity",))
_LAYERS = frozenset(("linear", "conv1d", "conv2d", "conv3d", "embedding"))


class _Seen(Struct):
    """All backward calls on a line."""

    made: tuple[int | None, ...] = ()  # the frames of the similarities
    num_calls: int = 0
    is_only: bool = True


class CollapseLog:
    """Looks at losses before backward. NOTE [Only similarities]."""

    def __init__(self, flow: Dataflow) -> None:
        """Share the calls that made them."""
        self._flow = flow
        self._seen: dict[Frame | None, _Seen] = {}

    def begin(self, outputs: Sequence[Any], backward: Frame | None) -> None:
        """Look at a call that is about to start."""
        seen = self._seen.setdefault(backward, _Seen())
        if not seen.is_only or seen.num_calls >= MOST_CALLS:
            return
        seen.num_calls += 1
        output = outputs[0] if len(outputs) == 1 else None
        found = similarities(self._flow.calls, self._flow.read(output)) if type(output) is torch.Tensor else []
        seen.is_only = bool(found)
        seen.made = tuple(dict.fromkeys(self._flow.calls[one].frame for one in found))

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[CollapsedOutputs]:
        """Yield the lines of backward where it was so in every call, if they are all of the program."""
        if not all(one.is_only for one in self._seen.values()) or any(map(maximizes, live_optimizers())):
            return
        for backward, seen in self._seen.items():
            if seen.num_calls >= LEAST_CALLS:
                made = tuple(frame_of(one) for one in seen.made)
                yield CollapsedOutputs(num_calls=seen.num_calls, made=made, backward=backward)


def similarities(calls: Sequence[Call], root: Read) -> list[int]:
    """List the similarities of outputs of the same layers, if a loss is nothing but their negative sum."""
    found: list[int] = []
    todo, seen = [(root, False)], set[tuple[int, bool]]()
    while todo:
        read, is_negative = todo.pop()
        if not read.is_live or (read.call, is_negative) in seen:
            continue
        seen.add((read.call, is_negative))
        if not read.leads_back or read.call == OUTSIDE:
            return []
        call = calls[read.call]
        name = call.name.strip("_")
        if name in _TURNS or (name in _PASSES and sum(one.is_live for one in call.reads) <= _most_live(name)):
            turned = _TURNS.get(name, ())
            todo += [(one, is_negative != (place in turned)) for place, one in enumerate(call.reads)]
        elif is_negative and _is_of_same_layers(calls, call):
            found.append(read.call)
        else:
            return []
    return sorted(found)


def _most_live(name: str) -> int:
    """Return how many inputs with a graph a function may have if it is to add them up, or to scale one."""
    return 1 if name in PRODUCTS or name == "multiply" or "div" in name else MOST_CALLS


def _is_of_same_layers(calls: Sequence[Call], call: Call) -> bool:
    """Return whether a call is a similarity of two outputs that the same layers have made."""
    is_similarity = call.name in _SIMILARITIES and [one.is_live for one in call.reads] == [True, True]
    if not is_similarity or any(not one.leads_back for one in call.reads):
        return False
    first, second = (leaves_behind(calls, one) for one in call.reads)
    made = [made_by(calls, one) for one in call.reads]
    return len(first & second) >= LEAST_SHARED and all(_has_layer(calls, one) for one in made)


def _has_layer(calls: Sequence[Call], number: int) -> bool:
    return any(calls[one].name in _LAYERS for one in all_behind(calls, Read(number, is_live=True)))
