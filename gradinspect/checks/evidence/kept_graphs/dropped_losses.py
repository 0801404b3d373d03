"""Losses that are computed one after the other, of which each backward call takes the last.

NOTE [Dropped losses]
`loss.backward()` below the loop over batches, instead of in it, trains on the last batch of each epoch. There is no
error: the graphs of the other losses are freed when their variable is assigned anew. It counts if that is so in every
round, with as many losses in each, and if nothing but Python reads the others. A loss that is compared with others, as
the hardest of several, or kept for a sum, is read by a call, and one for autograd.grad() has a round of its own.
"""

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from msgspec import Struct

from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.graphs import LastLossOnly
from gradinspect.checks.facts.value_flow import OUTSIDE, Call
from gradinspect.graph import Frame
from gradinspect.recording.frames import FrameTable
from gradinspect.recording.source_structure import contains, enclosing
from gradinspect.runner.engine import EngineCall

LEAST_DROPPED = 3  # in each round
LEAST_ROUNDS = 3
MANY_DROPPED = 7  # with as many, one round fewer will do
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


class _Lines(NamedTuple):
    """The frames of a loss and of its backward."""

    loss: int | None
    backward: int | None


class _Rounds(Struct):
    """What was dropped in each round."""

    counts: list[int] = []


class DroppedLosses:
    """Counts the losses of a line that no backward call goes through. NOTE [Dropped losses]."""

    def __init__(self, flow: Dataflow, frames: FrameTable) -> None:
        """Share the calls, and the lines that they are on."""
        self._flow = flow
        self._frames = frames
        self._since = 0  # the number of calls at the last call of the engine
        self._rounds: dict[_Lines, _Rounds] = {}

    def begin(self, call: EngineCall) -> None:
        """Look at a call of the engine that is about to start."""
        calls = self._flow.calls
        since, self._since = self._since, len(calls)
        is_one = len(call.outputs) == 1 and isinstance(call.outputs[0], torch.Tensor)
        root = self._flow.read(call.outputs[0]).call if is_one else OUTSIDE
        if root < since or call.kind != "backward":
            return
        lines = _Lines(calls[root].frame, self._frames.number_of(call.frame))
        self._rounds.setdefault(lines, _Rounds()).counts.append(self._num_dropped(calls, root, since))

    def wake(self) -> None:
        """Forget what was seen of a round: calls were not noted since."""
        self._since = len(self._flow.calls)

    def _num_dropped(self, calls: list[Call], root: int, since: int) -> int:
        """Return how many losses the line has computed before the root, if nothing has read them; else 0."""
        frame, op = calls[root].frame, calls[root].op
        others = {
            number
            for number in range(since, len(calls))
            if calls[number].frame == frame and calls[number].op == op and number != root and not calls[number].is_off
        }
        if not others or max(others) > root:
            return 0
        readers = (one for one in calls[since:] if one.cause is None and not one.is_off)
        return 0 if any(read.call in others for one in readers for read in one.reads) else len(others)

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[LastLossOnly]:
        """Yield the lines whose losses were dropped in every round."""
        for lines, rounds in self._rounds.items():
            counts = set(rounds.counts)
            least = LEAST_ROUNDS - 1 if min(counts) >= MANY_DROPPED else LEAST_ROUNDS
            if len(counts) == 1 and min(counts) >= LEAST_DROPPED and len(rounds.counts) >= least:
                yield LastLossOnly(
                    num_losses=min(counts) + 1,
                    num_rounds=len(rounds.counts),
                    loss=frame_of(lines.loss),
                    backward=frame_of(lines.backward),
                    is_below=self._is_below(lines),
                )

    def _is_below(self, lines: _Lines) -> bool:
        """Return whether backward is called below the loop that computes the losses."""
        if lines.loss is None or lines.backward is None:
            return False
        code, line = next(self._frames.chain(lines.backward))
        for other, computed in self._frames.chain(lines.loss):
            if other is code:
                loops = [one for one in enclosing(code.co_filename, computed) if isinstance(one, _LOOPS)]
                return bool(loops) and not contains(loops[0], line)
        return False
