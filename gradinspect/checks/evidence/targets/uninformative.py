"""Labels that say nothing: all are the same, or they are what the model has just said itself.

NOTE [Labels that say nothing on purpose]
A discriminator is told that all of a batch is real, and a contrastive loss that the first column is right: such labels
are made as zeros or ones. What comes out of the data, or of a draw, is to tell examples apart. Labels that a model has
chosen itself sharpen what it believes; programs that mean that have another loss on real labels as well.

Labels may be made where no call is seen, as by NumPy. But where one line has nothing but ones, and another nothing but
zeros, each line knows its answer: what is right of an example depends on the line, which is what is meant.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from typing import Any

import torch
from msgspec import Struct

from gradinspect.checks.evidence.arguments.given import argument
from gradinspect.checks.evidence.objectives.regressions import SAME_VALUES
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.evidence.values.result_states import SizeLimit
from gradinspect.checks.facts.targets import EqualLabels, OwnLabels
from gradinspect.checks.facts.value_flow import NO_LEAF, OUTSIDE, Read
from gradinspect.graph import Frame
from gradinspect.recording.transparency.own_errors import OwnErrors
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.originals import ops

OF_CLASSES = frozenset(("cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits"))
LEAST_CALLS = 5  # of a line
MOST_CALLS = 100
LEAST_LABELS = 64
MOST_ELEMENTS = 65_536
_CASTS = SAME_VALUES | frozenset(("long", "int", "bool", "double", "type", "index_select", "stack", "cat"))
_DRAWS = frozenset((
    "rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "bernoulli", "multinomial",
    "normal", "uniform", "random",
))  # fmt: skip
_OF_SHAPE = frozenset((
    "zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full", "empty_like", "new_empty", "fill",
    "zero",
))  # fmt: skip
_LIKE_ANOTHER = frozenset(("expand_as", "type_as", "view_as", "reshape_as", "to"))  # only the first gives values
_CHOICES = frozenset(("argmax", "max", "topk"))
_SCORES = SAME_VALUES | frozenset(("softmax", "log_softmax", "sigmoid"))


class _Seen(Struct):
    """All calls of a loss on a line."""

    loss: str
    made: int | None = None
    least: float = inf
    most: float = -inf
    num_labels: int = 0
    num_calls: int = 0
    is_constant: bool = False  # on purpose
    num_own: int = 0  # calls in which the model has chosen them
    chosen: int | None = None
    op: str = ""

    @property
    def says_nothing(self) -> bool:
        """Whether enough labels were read, all of which have one value that nobody has given them."""
        return not self.is_constant and self.num_labels >= LEAST_LABELS and self.least == self.most


class UninformativeLog:
    """Looks at labels. NOTE [Labels that say nothing on purpose]."""

    functions = OF_CLASSES

    def __init__(self, flow: Dataflow, errors: OwnErrors) -> None:
        """Share the calls that made them; what is too large is counted."""
        self._flow = flow
        self._limit = SizeLimit(errors, "batch of labels", MOST_ELEMENTS)
        self._seen: dict[int | None, _Seen] = {}

    def note(self, loss: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call that has returned, given the frame that it is on."""
        scores: Any = argument(args, kwargs, 0, "input")
        target: Any = argument(args, kwargs, 1, "target")
        seen = self._seen.setdefault(number, _Seen(loss))
        if type(target) is not torch.Tensor or type(scores) is not torch.Tensor or seen.num_calls >= MOST_CALLS:
            return
        seen.num_calls += 1
        made = self._made(self._flow.read(target))
        name = "" if made == OUTSIDE else self._flow.calls[made].name.strip("_")
        seen.made = None if made == OUTSIDE else self._flow.calls[made].frame
        seen.is_constant = seen.is_constant or not (self._is_data(target) and scores.requires_grad)
        if name in _CHOICES and self._is_of(made, self._flow.read(scores)):
            seen.num_own, seen.chosen, seen.op = seen.num_own + 1, seen.made, name
        if target.is_cpu and (not seen.is_constant or ops.numel(target) <= MOST_ELEMENTS):
            self._read(seen, target, number)

    def _read(self, seen: _Seen, target: torch.Tensor, number: int | None) -> None:
        if seen.num_labels and seen.least != seen.most:
            return
        if not self._limit.allows(target, number):
            seen.is_constant = True
            return
        with unobserved():
            values = ops.detach(target)
            seen.least = min(seen.least, float(ops.item(ops.amin(values))))
            seen.most = max(seen.most, float(ops.item(ops.amax(values))))
        seen.num_labels += ops.numel(target)

    def _is_data(self, target: torch.Tensor) -> bool:
        """Return whether labels come from outside, or from a draw; one number that was expanded is made so."""
        if not any(ops.stride(target)):
            return False
        calls, todo = self._flow.calls, [self._flow.read(target).call]
        seen = set[int]()
        while todo:
            number = todo.pop()
            name = "" if number == OUTSIDE else calls[number].name.strip("_")
            if number == OUTSIDE or name in _DRAWS:
                return True
            if number not in seen and name not in _OF_SHAPE:
                seen.add(number)
                reads = calls[number].reads
                todo += [read.call for read in (reads[:1] if name in _LIKE_ANOTHER else reads)]
        return False

    def _made(self, read: Read) -> int:
        calls, number = self._flow.calls, read.call
        while number != OUTSIDE and calls[number].name.strip("_") in _CASTS and calls[number].reads:
            before = calls[number].reads[0].call
            if before == OUTSIDE:
                return number
            number = before
        return number

    def _is_of(self, choice: int, scores: Read) -> bool:
        """Return whether a choice was made among scores, perhaps after what keeps their order."""
        first, second = (self._scores(one) for one in (self._flow.calls[choice].reads[0], scores))
        return first == second != OUTSIDE

    def _scores(self, read: Read) -> int:
        calls, number = self._flow.calls, read.call
        while number != OUTSIDE and calls[number].name.strip("_") in _SCORES and calls[number].reads:
            if calls[number].reads[0].leaf != NO_LEAF or calls[number].reads[0].call == OUTSIDE:
                return number
            number = calls[number].reads[0].call
        return number

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[EqualLabels | OwnLabels]:
        """Yield the lines where it was so in every call."""
        values = {one.least for one in self._seen.values() if one.num_labels and one.least == one.most}
        are_all_own = all(one.num_own == one.num_calls for one in self._seen.values() if one.num_calls)
        for number, seen in self._seen.items():
            if seen.num_calls < LEAST_CALLS:
                continue
            if are_all_own and seen.num_own:
                yield OwnLabels(op=seen.op, num_calls=seen.num_calls, made=frame_of(seen.chosen), used=frame_of(number))
            elif len(values) == 1 and seen.says_nothing:
                yield EqualLabels(
                    loss=seen.loss, value=seen.least, num_labels=seen.num_labels, num_calls=seen.num_calls,
                    made=frame_of(seen.made), used=frame_of(number),
                )  # fmt: skip
