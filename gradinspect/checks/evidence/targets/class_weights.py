"""Weights of classes that follow how frequent the classes are, where they are to make up for it.

NOTE [Weights of classes]
Which class is to count more is the program's to say. But weights that have the proportions of the labels themselves,
the one of a class that is nine times as frequent nine times as large, were computed from the counts, and not divided
by them. The labels that a loss was given show the proportions, up to chance: a few hundred are needed, and classes
that are far from equally frequent. `pos_weight` is one number, which may be chosen: it counts only if it is a fraction
that nobody writes by hand.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from msgspec import Struct

from gradinspect.checks.evidence.arguments.given import argument
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.evidence.values.result_states import SizeLimit
from gradinspect.checks.facts.targets import WeightsOfFrequency
from gradinspect.checks.facts.value_flow import OUTSIDE, first_behind
from gradinspect.graph import Frame
from gradinspect.recording.transparency.own_errors import OwnErrors
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.originals import ops

LEAST_LABELS = 200
LEAST_OF_A_CLASS = 5
LEAST_SKEW = 3.0  # the largest class is that many times as large as the smallest
MOST_APART = 1.5  # the proportions of weights and of labels
MOST_ELEMENTS = 65_536
MOST_CLASSES = 1_000
ROUNDING = 1e-6  # relative, of float32
WRITTEN_DIGITS = 2  # after the point, of a number that is written by hand
_SAME = frozenset(("to", "cuda", "float", "clone", "detach", "contiguous"))
_BINARY = "binary_cross_entropy_with_logits"


class _Seen(Struct):
    """All calls of a loss on a line."""

    loss: str
    made: int | None = None  # the frame
    weights: tuple[float, ...] = ()
    counts: list[int] = []  # of the labels of each class
    is_other: bool = False  # the weights are not the same in all calls, or there are none


class ClassWeightLog:
    """Looks at the weights and the labels of losses. NOTE [Weights of classes]."""

    functions = frozenset(("cross_entropy", "nll_loss", _BINARY))

    def __init__(self, flow: Dataflow, errors: OwnErrors) -> None:
        """Share the calls that made them; what is too large is counted."""
        self._flow = flow
        self._limit = SizeLimit(errors, "batch of labels with weights", MOST_ELEMENTS)
        self._seen: dict[int | None, _Seen] = {}

    def note(self, loss: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call that has returned, given the frame that it is on."""
        place, name = (6, "pos_weight") if loss == _BINARY else (2, "weight")
        weight: Any = argument(args, kwargs, place, name)
        target: Any = argument(args, kwargs, 1, "target")
        seen = self._seen.setdefault(number, _Seen(loss))
        if seen.is_other or not _is_plain(weight) or not _is_plain(target):
            seen.is_other = True
            return
        if not self._limit.allows(target, number) or not 0 < ops.numel(weight) <= MOST_CLASSES:
            seen.is_other = True
            return
        made = first_behind(self._flow.calls, self._flow.read(weight).call, _SAME)
        seen.made = None if made == OUTSIDE else self._flow.calls[made].frame
        with unobserved():
            weights, counts = _numbers(weight), _counts(loss, target, ops.numel(weight))
        seen.is_other = counts is None or (bool(seen.weights) and seen.weights != weights)
        seen.weights = weights
        seen.counts = [a + b for a, b in zip(seen.counts or [0] * len(counts or ()), counts or (), strict=False)]

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[WeightsOfFrequency]:
        """Yield the lines whose weights have the proportions of their labels."""
        for number, seen in self._seen.items():
            if seen.is_other or sum(seen.counts) < LEAST_LABELS or min(seen.counts) < LEAST_OF_A_CLASS:
                continue
            is_positive = seen.loss == _BINARY
            classes = _inverted_binary(seen) if is_positive else _inverted(seen)
            if classes is not None:
                frequent, rare = max(classes, key=_size), min(classes, key=_size)
                yield WeightsOfFrequency(
                    loss=seen.loss, is_positive=is_positive, num_labels=sum(seen.counts),
                    frequent=frequent.label, frequent_weight=frequent.weight,
                    frequent_share=frequent.num_labels / sum(seen.counts),
                    rare=rare.label, rare_weight=rare.weight, rare_share=rare.num_labels / sum(seen.counts),
                    layer=frame_of(self._flow.origins.of_line(number, seen.loss)), made=frame_of(seen.made),
                    used=frame_of(number),
                )  # fmt: skip


class _Class(NamedTuple):
    """What is known of one class."""

    label: int
    weight: float
    num_labels: int


def _size(one: _Class) -> int:
    return one.num_labels


def _inverted(seen: _Seen) -> list[_Class] | None:
    """Return the classes whose weights grow as their counts do."""
    classes = [
        _Class(label, weight, count)
        for label, (weight, count) in enumerate(zip(seen.weights, seen.counts, strict=True))
    ]
    if len(classes) < 2 or min(seen.weights) <= 0 or max(seen.counts) < LEAST_SKEW * min(seen.counts):
        return None
    shares = [one.weight / one.num_labels for one in classes]
    return classes if max(shares) <= MOST_APART * min(shares) else None


def _inverted_binary(seen: _Seen) -> list[_Class] | None:
    """Return both classes if the weight of the positive ones is their share, or their number by that of the others."""
    (weight,), (negative, positive) = seen.weights, seen.counts
    if max(seen.counts) < LEAST_SKEW * min(seen.counts) or weight <= 0 or _is_written(weight):
        return None
    if not any(
        1 / MOST_APART <= weight / one <= MOST_APART for one in (positive / negative, positive / sum(seen.counts))
    ):
        return None
    return [_Class(0, 1.0, negative), _Class(1, weight, positive)] if (weight > 1) == (positive > negative) else None


def _is_written(weight: float) -> bool:
    """Return whether a number is one that is written by hand; a tensor of float32 has it up to rounding."""
    return abs(round(weight, WRITTEN_DIGITS) - weight) < ROUNDING * weight


def _is_plain(tensor: Any) -> bool:
    return type(tensor) is torch.Tensor and tensor.is_cpu and not tensor.requires_grad


def _numbers(weight: torch.Tensor) -> tuple[float, ...]:
    values = ops.reshape(ops.to(weight, torch.float64), (-1,))
    return tuple(float(ops.item(one)) for one in ops.unbind(values))


def _counts(loss: str, target: torch.Tensor, num_classes: int) -> list[int] | None:
    """Count the labels of each class, of those that there are; None if they are something else."""
    if loss == _BINARY:
        ones = int(ops.item(ops.sum(ops.eq(target, 1))))
        zeros = int(ops.item(ops.sum(ops.eq(target, 0))))
        return [zeros, ones] if num_classes == 1 and zeros + ones == ops.numel(target) else None
    if target.dtype != torch.int64:
        return None
    labels = ops.reshape(target, (-1,))
    labels = ops.masked_select(labels, ops.logical_and(ops.ge(labels, 0), ops.lt(labels, num_classes)))
    counted = ops.bincount(labels, minlength=num_classes)
    return [int(ops.item(one)) for one in ops.unbind(counted)]
