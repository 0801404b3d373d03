"""Batches of one class after another, as the examples were in the order of their labels.

NOTE [One class at a time]
Each batch is to be a small picture of the data. Where nearly all labels of a batch are one class, that class stays for
some batches, and others follow, the examples came in the order of their classes. The labels of a discriminator change
with each call, real and made up, and have runs of one; those of a sequence belong to one document, so only one label
for each example counts. With a few examples in a batch it may be chance. What was chosen by a policy is weighed by
rewards, so losses that are not reduced are left out. Where a class follows another only as a loop around the batches
goes on, as that over the tasks of a model that learns one after the other, the program asks for it.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from msgspec import Struct

from gradinspect.checks.evidence.arguments.given import argument, reduction_of
from gradinspect.checks.evidence.rates.epoch_loops import outer_passes
from gradinspect.checks.evidence.targets.uninformative import OF_CLASSES
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.evidence.values.result_states import SizeLimit
from gradinspect.checks.facts.targets import LabelRuns
from gradinspect.checks.facts.value_flow import ancestors
from gradinspect.graph import Frame
from gradinspect.recording.transparency.own_errors import OwnErrors
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.originals import ops

LEAST_CALLS = 6  # of a line
MOST_CALLS = 100
LEAST_LABELS = 8  # of a batch
MOST_ELEMENTS = 65_536
MOST_LEFT = 0.4  # of what other classes would have in a batch, were it like all of the data
MOST_SHARE = 0.7  # of the batches that have the same class
_LEAST_RUN = 2.0  # batches of one class in a row, on average


class _Seen(Struct):
    """All calls of a loss on a line."""

    loss: str
    shares: list[float] = []  # of the class that most labels of a batch have
    classes: list[float] = []  # these classes
    passes: list[tuple[int, ...]] = []  # of the loops around the one over batches
    num_labels: int = 0
    is_other: bool = False  # not one label for each example
    made: int | None = None
    loader: int | None = None  # the frame that made the DataLoader, if it takes the examples as they come


class LabelRunLog:
    """Looks at labels. NOTE [One class at a time]."""

    functions = OF_CLASSES

    def __init__(self, flow: Dataflow, errors: OwnErrors) -> None:
        """Share the calls that made the labels; what is too large is counted."""
        self._flow = flow
        self._limit = SizeLimit(errors, "batch of labels", MOST_ELEMENTS)
        self._seen: dict[int | None, _Seen] = {}

    def note(self, loss: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call that has returned, given the frame that it is on."""
        scores: Any = argument(args, kwargs, 0, "input")
        target: Any = argument(args, kwargs, 1, "target")
        if type(scores) is not torch.Tensor or type(target) is not torch.Tensor or not scores.requires_grad:
            return
        seen = self._seen.setdefault(number, _Seen(loss))
        if seen.is_other or len(seen.shares) >= MOST_CALLS:
            return
        is_column = target.shape == scores.shape and len(scores.shape) == 2 and scores.shape[1] == 1
        is_class = len(target.shape) == 1 and scores.shape[:1] == target.shape
        is_weighed = reduction_of(loss, args, kwargs) == "none"  # as by the rewards of what was chosen
        is_plain = (is_column or is_class) and not target.requires_grad and not is_weighed
        seen.is_other = not is_plain or not self._limit.allows(target, number)
        if not seen.is_other and target.shape[0] >= LEAST_LABELS:
            seen.made = self._flow.made_at(target)
            if not seen.shares:
                behind = ancestors(self._flow.calls, self._flow.read(target).call)
                if self._flow.origins.takes_in_order(behind):
                    seen.loader = self._flow.origins.of_batch(behind)
            seen.passes.append(outer_passes(sys._getframe(1)))
            self._read(seen, target)

    def _read(self, seen: _Seen, target: torch.Tensor) -> None:
        with unobserved():
            values = ops.flatten(ops.detach(target))
            most = ops.mode(values)[0]
            seen.classes.append(float(ops.item(most)))
            seen.shares.append(float(ops.item(ops.sum(ops.eq(values, most)))) / float(ops.numel(values)))
        seen.num_labels += int(ops.numel(target))

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[LabelRuns]:
        """Yield the lines where the classes come one after another."""
        for number, seen in self._seen.items():
            num_calls = len(seen.shares)
            if seen.is_other or num_calls < LEAST_CALLS:
                continue
            share = sum(seen.shares) / num_calls
            num_runs = 1 + sum(one != other for one, other in zip(seen.classes, seen.classes[1:], strict=False))
            kinds = set(seen.classes)
            largest = max(seen.classes.count(one) for one in kinds) / num_calls
            is_apart = largest <= MOST_SHARE and 1 - share <= MOST_LEFT * (1 - largest)
            if is_apart and num_calls >= _LEAST_RUN * num_runs and not _follows_loops(seen):
                yield LabelRuns(
                    loss=seen.loss, num_calls=num_calls, num_kinds=len(kinds), num_runs=num_runs, share=share,
                    loader=frame_of(seen.loader),
                    labels=seen.num_labels // num_calls, made=frame_of(seen.made), used=frame_of(number),
                )  # fmt: skip


def _follows_loops(seen: _Seen) -> bool:
    """Return whether each class begins with a pass of a loop around the batches."""
    calls = list(zip(seen.classes, seen.passes, strict=False))
    return all(before[1] != after[1] for before, after in pairwise(calls) if before[0] != after[0])
