"""Classes and items that a program has to learn, and that it tells torch to ignore.

NOTE [Ignored on purpose]
`padding_idx=0` and `ignore_index=0` leave out what fills up rows. That stands at one end of its rows, in runs, and is
far more frequent than others, or it is a background. An id that comes about as often as each of the others, as often
beside itself as chance has it, and before others as well as behind them, is one of them. ctc_loss has a class of its
own for the blank: it is not among the targets.

NOTE [Another id fills up]
Labels that belong to padded tokens are all of one id, which no other token has. If that is not the one that the loss
ignores, this one is a class of tokens, however frequent it is: the tag "O" is 0, as the padding of the tokens is.

NOTE [Mostly padding]
Where a loss ignores nothing, and averages over all labels, those of padded tokens count as much as others. That a model
is to say that a row is over is a choice. But with more padding than anything else the mean is one of padding. The label
after the last token of a row may be padding as well. Where no embedding has a padding_idx, NOTE [Filled rows] says
which tokens are padded ones.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import torch
from msgspec import Struct

from gradinspect.checks.evidence.arguments.given import argument, reduction_of
from gradinspect.checks.evidence.targets.filled_rows import FilledRows, filled_rows
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.evidence.values.result_states import SizeLimit
from gradinspect.checks.facts.targets import CountedPadding, IgnoredClass
from gradinspect.graph import Frame
from gradinspect.recording.transparency.own_errors import OwnErrors
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.originals import ops

LEAST_CALLS = 3  # of a line
MOST_CALLS = 200
MOST_ELEMENTS = 65_536
NO_PADDING = -sys.maxsize  # as the padding_idx of an embedding that has none
_LEAST_TIMES = 12
_LEAST_OTHERS = 2
_FREQUENCY = 0.4, 2.5  # of an id, over the mean of the others
_MOST_CLASSES = 100_000
_BEYOND = 0.25  # labels of padding beside other tokens than padded ones, of all labels of padding


class _Seen(Struct):
    """All calls on a line."""

    kind: Literal["class", "item", "blank"]
    index: int
    num_times: int = 0
    num_beside: int = 0  # times that it stands beside itself
    is_before: bool = False  # another id follows it in a row
    is_behind: bool = False
    num_calls: int = 0
    counts: Any = None  # of each id
    num_padded: int = 0  # calls in which other labels belong to padded tokens: NOTE [Another id fills up]
    padding: int | None = None  # the id of these
    is_padding: bool = False  # the ignored one belongs to padded tokens


class _Padded(Struct):
    """All calls on a line that ignore no class: NOTE [Mostly padding]."""

    ignored: int  # the label, negative
    label: int = 0
    num_calls: int = 0
    num_padded: int = 0  # calls with padding
    is_other: bool = False  # a call has shown that these labels are no padding
    num_padding: int = 0  # labels that are those of padding
    num_others: int = 0  # of these, those of other tokens
    num_all: int = 0
    filler: int | None = None  # the id of padded tokens, where no padding_idx says so
    is_of_tokens: bool = False  # other tokens have this label, too


class IgnoredLog:
    """Looks at ids. NOTE [Ignored on purpose]."""

    functions = frozenset(("embedding", "cross_entropy", "nll_loss", "ctc_loss"))

    def __init__(self, flow: Dataflow, errors: OwnErrors) -> None:
        """Share the lines that made losses; what is too large is counted."""
        self._origins = flow.origins
        self._limit = SizeLimit(errors, "batch of ids or labels", MOST_ELEMENTS)
        self._seen: dict[tuple[int | None, int], _Seen] = {}
        self._padded: dict[int | None, _Padded] = {}
        self._is_padded: Any = None  # which of the ids that were looked up last are padding_idx
        self._filled: FilledRows | None = None  # the same, of those of an embedding that has none
        self._filled_at: tuple[int | None, torch.Size] | None = None  # the frame that looked these up, and their shape
        self._num_looked_up = 0

    def note(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call that has returned, given the frame that it is on."""
        if function == "ctc_loss":
            self._look_for_blank(args, kwargs, number)
            return
        place, name, at = (0, "input", 2) if function == "embedding" else (1, "target", 4)
        ids: Any = argument(args, kwargs, place, name)
        option = "padding_idx" if function == "embedding" else "ignore_index"
        index = argument(args, kwargs, at, option)
        if type(ids) is not torch.Tensor or not ids.is_cpu or ops.is_floating_point(ids):
            return
        index = NO_PADDING if index is None and function == "embedding" else index
        if type(index) is not int:
            return
        if function == "embedding" and NO_PADDING < index < 0 and len(args) > 1:
            index += args[1].shape[0]
        if index < 0:
            self._note_nothing_ignored(function, ids, index, number, averages_all=_averages_all(args, kwargs))
        elif self._limit.allows(ids, number):
            kind: Literal["class", "item"] = "item" if function == "embedding" else "class"
            seen = self._seen.setdefault((number, index), _Seen(kind, index))
            if seen.num_calls < MOST_CALLS:
                self._look(seen, ids)

    def _note_nothing_ignored(
        self, function: str, ids: torch.Tensor, index: int, number: int | None, *, averages_all: bool
    ) -> None:
        """Look for padding in ids of which none is ignored."""
        if function == "embedding":
            if self._num_looked_up < MOST_CALLS and self._is_padded is None and self._limit.allows(ids, number):
                self._num_looked_up += 1
                with unobserved():
                    filled = filled_rows(ids)
                if filled is not None or (number, ids.shape) == self._filled_at:
                    self._filled, self._filled_at = filled, (number, ids.shape)
        elif function == "cross_entropy" and averages_all and self._padded_places is not None:
            self._look_for_padding(self._padded.setdefault(number, _Padded(ignored=index)), ids, number)

    @property
    def _padded_places(self) -> Any:
        """Which of the ids that were looked up last belong to padded tokens."""
        return self._filled.places if self._is_padded is None and self._filled is not None else self._is_padded

    def _look(self, seen: _Seen, ids: torch.Tensor) -> None:
        seen.num_calls += 1
        with unobserved():
            flat = ops.reshape(ids, (-1,))
            is_it = ops.eq(ids if len(ids.shape) else flat, seen.index)
            if seen.kind == "item":
                self._is_padded = is_it
            else:
                self._compare_padding(seen, flat)
            if ops.item(ops.amax(flat)) >= _MOST_CLASSES:
                return
            seen.num_times += ops.item(ops.sum(is_it))
            ahead, behind = is_it[..., :-1], is_it[..., 1:]
            seen.num_beside += ops.item(ops.sum(ops.logical_and(behind, ahead)))
            seen.is_before |= bool(ops.item(ops.any(ops.gt(ahead, behind))))
            seen.is_behind |= bool(ops.item(ops.any(ops.gt(behind, ahead))))
            counts = ops.bincount(ops.clamp(flat, min=0))
            if seen.counts is None or len(seen.counts) < len(counts):
                seen.counts, counts = counts, seen.counts
            if counts is not None:
                seen.counts[: len(counts)] += counts

    def _compare_padding(self, seen: _Seen, flat: torch.Tensor) -> None:
        """Look at the labels of padded tokens. NOTE [Another id fills up]."""
        padded = None if self._is_padded is None else ops.reshape(self._is_padded, (-1,))
        if padded is None or padded.shape != flat.shape or not ops.item(ops.any(padded)):
            return
        labels = ops.masked_select(flat, padded)
        first = ops.item(ops.amin(labels))
        if first != ops.item(ops.amax(labels)):
            return
        others = ops.masked_select(flat, ops.logical_not(padded))
        if first == seen.index:
            seen.is_padding = True
        elif not ops.item(ops.any(ops.eq(others, first))):
            seen.padding, seen.num_padded = first, seen.num_padded + 1

    def _look_for_padding(self, seen: _Padded, ids: torch.Tensor, number: int | None) -> None:
        """Look at the labels of a loss that ignores none of them. NOTE [Mostly padding]."""
        if seen.num_calls >= MOST_CALLS or seen.is_other or not self._limit.allows(ids, number):
            return
        seen.num_calls += 1
        with unobserved():
            flat, is_padded = ops.reshape(ids, (-1,)), ops.reshape(self._padded_places, (-1,))
            seen.num_all += len(flat)
            if is_padded.shape != flat.shape or not ops.item(ops.any(is_padded)):
                return
            labels = ops.masked_select(flat, is_padded)
            label, most = int(ops.item(ops.amin(labels))), int(ops.item(ops.amax(labels)))
            num_padding = int(ops.item(ops.sum(ops.eq(flat, label))))
            is_of_tokens = not _is_all_near(ops.eq(flat, label), self._padded_places)
        is_known = label != seen.ignored and (seen.num_padded == 0 or label == seen.label)
        num_others = num_padding - len(labels)
        seen.is_other = label != most or not is_known
        if not seen.is_other:
            seen.label = label
            seen.num_padded, seen.num_padding = seen.num_padded + 1, seen.num_padding + num_padding
            seen.num_others += num_others
            seen.filler = None if self._is_padded is not None or self._filled is None else self._filled.filler
            seen.is_of_tokens |= is_of_tokens

    def _look_for_blank(self, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        given = dict(zip(("log_probs", "targets", "input_lengths", "target_lengths", "blank"), args, strict=False))
        given |= dict(kwargs)
        targets: Any = given.get("targets")
        lengths: Any = given.get("target_lengths")
        blank = given.get("blank", 0)
        if type(targets) is not torch.Tensor or not targets.is_cpu or not self._limit.allows(targets, number):
            return
        with unobserved():
            lengths = ops.tolist(lengths) if isinstance(lengths, torch.Tensor) else list(lengths or ())
            rows = (
                [row[:end] for row, end in zip(targets, lengths, strict=False)] if len(targets.shape) > 1 else [targets]
            )
            used = ops.cat(rows) if rows else targets
            seen = self._seen.setdefault((number, blank), _Seen("blank", blank, counts=ops.zeros(1)))
            seen.num_calls += 1
            seen.num_times += ops.item(ops.sum(ops.eq(used, blank)))
            seen.num_beside += len(used)

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[IgnoredClass | CountedPadding]:
        """Yield what is ignored on a line, and comes like the others, and padding that is not ignored."""
        for number, padded in self._padded.items():
            if _is_mostly_padding(padded):
                yield CountedPadding(
                    label=padded.label, num_calls=padded.num_calls, num_padding=padded.num_padding,
                    num_all=padded.num_all, filler=padded.filler, is_of_tokens=padded.is_of_tokens,
                    layer=frame_of(self._origins.of_line(number, "cross_entropy")), used=frame_of(number),
                )  # fmt: skip
        for (number, _), seen in self._seen.items():
            if seen.num_calls < LEAST_CALLS or seen.counts is None:
                continue
            num_all = seen.num_beside if seen.kind == "blank" else int(ops.item(ops.sum(seen.counts)))
            others = int(ops.item(ops.count_nonzero(seen.counts))) - 1
            has_other = seen.num_padded >= LEAST_CALLS and not seen.is_padding and seen.num_times >= _LEAST_TIMES
            is_real = seen.num_times > 0 if seen.kind == "blank" else _is_like_others(seen, num_all, others)
            if is_real or has_other:
                yield IgnoredClass(
                    kind=seen.kind, index=seen.index, num_times=seen.num_times, num_all=num_all,
                    num_others=max(others, 0), padding=seen.padding if has_other else None,
                    layer=frame_of(self._made(number, seen.kind)), used=frame_of(number),
                )  # fmt: skip

    def _made(self, number: int | None, kind: Literal["class", "item", "blank"]) -> int | None:
        """Return the frame that made the only module which ignores something on a line."""
        functions = {"class": ("cross_entropy", "nll_loss"), "item": ("embedding",), "blank": ("ctc_loss",)}[kind]
        made = {one for name in functions if (one := self._origins.of_line(number, name)) is not None}
        return next(iter(made)) if len(made) == 1 else None


def _is_all_near(is_it: torch.Tensor, padded: torch.Tensor) -> bool:
    """Return whether all places that have a label are padded ones, beside them, or last, as the end of a row is."""
    near = ops.clone(padded)
    for dim in range(len(padded.shape)):
        near = ops.logical_or(near, ops.logical_or(ops.roll(padded, 1, dim), ops.roll(padded, -1, dim)))
        ops.fill_(ops.select(near, dim, -1), value=True)
    return not ops.item(ops.any(ops.logical_and(is_it, ops.logical_not(ops.reshape(near, (-1,))))))


def _is_mostly_padding(padded: _Padded) -> bool:
    """Return whether padding is more than half of what a loss averages. NOTE [Mostly padding]."""
    is_known = padded.num_padded >= LEAST_CALLS and not padded.is_other
    return is_known and 2 * padded.num_padding > padded.num_all and padded.num_others <= _BEYOND * padded.num_padding


def _is_like_others(seen: _Seen, num_all: int, others: int) -> bool:
    """Return whether an id comes as often as each of the others, where chance has it. NOTE [Ignored on purpose]."""
    is_at_end = not (seen.is_before and seen.is_behind)
    if seen.num_times < _LEAST_TIMES or others < _LEAST_OTHERS or is_at_end:
        return False
    mean = (num_all - seen.num_times) / others
    low, high = _FREQUENCY
    by_chance = seen.num_times * seen.num_times / num_all
    return low * mean <= seen.num_times <= high * mean and seen.num_beside <= 2 * by_chance + 2


def _averages_all(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Return whether cross_entropy takes the mean of all labels, and gives none of them a weight."""
    reduction = reduction_of("cross_entropy", args, kwargs)
    return argument(args, kwargs, 2, "weight") is None and reduction == "mean"
