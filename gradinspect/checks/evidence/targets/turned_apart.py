"""Inputs and targets that were flipped, turned and shifted by draws of their own, so that their places differ.

NOTE [Turned apart]
A mask, a map of depths and an image that is to be restored belong to their inputs place by place. What flips, turns or
shifts the one has to do the same to the other. So the calls behind both are compared: which functions, along which
axes, and by how much, as often as they come in a batch. Those of one draw are the same in every batch, and those of two
may be so by chance. They count if they differ in most batches, and not in the same way, as two fixed turns do; and only
if the targets come from no network. A shift has a number that may be meant to differ, so it counts where one line has
made both.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from msgspec import Struct

from gradinspect.checks.evidence.arguments.given import argument
from gradinspect.checks.evidence.objectives.regressions import LOSSES_OF_TARGETS
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.targets import TurnedApart
from gradinspect.checks.facts.value_flow import NO_LEAF, OUTSIDE, ancestors
from gradinspect.graph import Frame

LEAST_CALLS = 4  # of a line
LEAST_APART = 3
MOST_CALLS = 12
MOST_PAIRED = 20  # calls of one batch and side
LEAST_AXES = 3  # of targets that have places
_TURNS = frozenset(("flip", "fliplr", "flipud", "rot90"))
_SHIFTS = frozenset(("roll",))


class _Seen(Struct):
    """All calls of a loss on a line."""

    num_calls: int = 0
    num_apart: int = 0  # of these, those whose turns differ
    differences: set[str] = set()  # how the turns of both sides differ
    num_inputs: int = 0  # turns, in the last of them
    num_targets: int = 0
    first: int | None = None
    second: int | None = None
    is_other: bool = False


class TurnedApartLog:
    """Looks at flips and turns. NOTE [Turned apart]."""

    functions = LOSSES_OF_TARGETS | _TURNS | _SHIFTS

    def __init__(self, flow: Dataflow) -> None:
        """Share the calls that made inputs and targets."""
        self._flow = flow
        self._turns: dict[int, str] = {}  # what a call does, by its number
        self._seen: dict[int | None, _Seen] = {}

    def note(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call that has returned, given the frame that it is on."""
        if function not in LOSSES_OF_TARGETS:
            turned: Any = argument(args, kwargs, 0, "input")
            if type(turned) is torch.Tensor and not turned.requires_grad:
                how = (*args[1:], *sorted((name, value) for name, value in kwargs.items() if name != "input"))
                self._turns[len(self._flow.calls)] = f"{function} {how}"
            return
        scores: Any = argument(args, kwargs, 0, "input")
        target: Any = argument(args, kwargs, 1, "target")
        if not self._turns or type(scores) is not torch.Tensor or type(target) is not torch.Tensor:
            return
        seen = self._seen.setdefault(number, _Seen())
        if target.requires_grad or not scores.requires_grad or len(target.shape) < LEAST_AXES:
            seen.is_other = True
        elif not seen.is_other and seen.num_calls < MOST_CALLS:
            self._compare(seen, scores, target)

    def _compare(self, seen: _Seen, scores: torch.Tensor, target: torch.Tensor) -> None:
        """Look at the turns of both sides."""
        calls = self._flow.calls
        mine, its = (ancestors(calls, self._flow.read(one).call, stops_at_leaves=True) for one in (scores, target))
        seen.is_other = any(read.leaf != NO_LEAF for call in its if call != OUTSIDE for read in calls[call].reads)
        inputs, targets = (sorted(one & self._turns.keys()) for one in (mine - its, its - mine))
        seen.num_calls += 1
        if not inputs or not targets:
            return
        first, second = (Counter(map(self._of_both(inputs, targets), one)) for one in (inputs, targets))
        difference = sorted((first - second).items()), sorted((second - first).items())
        if first == second:
            return
        seen.num_apart, seen.num_inputs, seen.num_targets = seen.num_apart + 1, len(inputs), len(targets)
        seen.differences = seen.differences | {repr(difference)}
        seen.first, seen.second = self._parted(inputs, targets)

    def _of_both(self, inputs: Sequence[int], targets: Sequence[int]) -> Callable[[int], str]:
        """Return what says of a call what it does, without how far it shifts where two lines do so."""
        pair = self._of_one_line(inputs, targets, _SHIFTS)
        return lambda call: self._turns[call] if pair or self._turns[call].partition(" ")[0] not in _SHIFTS else "shift"

    def _parted(self, inputs: Sequence[int], targets: Sequence[int]) -> tuple[int | None, int | None]:
        """Return the lines that turn the one and the other, or that call for both what does so."""
        pair = self._of_one_line(inputs, targets, _TURNS | _SHIFTS)
        return self._flow.parted(*(pair or (inputs[0], targets[0])))

    def _of_one_line(
        self, inputs: Sequence[int], targets: Sequence[int], functions: frozenset[str]
    ) -> tuple[int, int] | None:
        """Return two calls of functions, one of each side, that one line has made."""
        sides = [[call for call in side if self._turns[call].partition(" ")[0] in functions][:MOST_PAIRED]
                 for side in (inputs, targets)]  # fmt: skip
        pairs = ((one, other) for one in sides[0] for other in sides[1])
        return next((pair for pair in pairs if self._flow.parted(*pair)[0] != self._flow.calls[pair[0]].frame), None)

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[TurnedApart]:
        """Yield the lines where it was so in most calls, and in other ways."""
        for number, seen in self._seen.items():
            is_often = seen.num_apart >= LEAST_APART and 2 * seen.num_apart > seen.num_calls >= LEAST_CALLS
            if is_often and not seen.is_other and len(seen.differences) > 1:
                yield TurnedApart(
                    num_inputs=seen.num_inputs, num_targets=seen.num_targets, num_calls=seen.num_calls,
                    num_apart=seen.num_apart,
                    first=frame_of(seen.first), second=frame_of(seen.second), used=frame_of(number),
                )  # fmt: skip
