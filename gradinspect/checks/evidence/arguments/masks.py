"""Masks that hide the tokens and leave the padding.

NOTE [What is padding]
Masks say which positions are hidden by True in one place and by False in another, and torch takes both. The ids that an
embedding was given just before say what the positions are: a mask is inverted if all that it leaves has one id, none of
what it hides has that id, and there are several ids among this. What it leaves begins or ends each row, and there is
not as much of it in each row: a single token that all others may read, as at the start of each row, is no padding.
Ahead of the ids or behind them a mask may have a few positions that are the same in each row, as of a class token.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from msgspec import Struct

from gradinspect.checks.evidence.arguments.given import argument
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.evidence.values.result_states import SizeLimit, is_small_and_readable
from gradinspect.checks.facts.value_flow import OUTSIDE
from gradinspect.checks.facts.values import InvertedMask
from gradinspect.graph import Frame
from gradinspect.recording.transparency.own_errors import OwnErrors
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.classes import number_of
from gradinspect.torch_api.patching.originals import ops
from gradinspect.torch_api.weak import HiddenRef

LEAST_CALLS = 3  # of a line, with padding
MOST_CALLS = 200
MOST_ELEMENTS = 65_536
MOST_ADDED = 4  # positions of a row that no id was looked up for
LARGE = -1e4  # what is added to hide a score is less
_PASSED = frozenset((
    "getitem", "unsqueeze", "view", "reshape", "expand", "logical_not", "invert", "bitwise_not", "to", "bool",
))  # fmt: skip
_KEPT = 6  # ids of the last embeddings


class _Seen(Struct):
    """All calls on a line."""

    made: int | None = None  # the frame of the call that made the first mask
    token: int | None = None
    num_calls: int = 0  # with padding
    is_inverted: bool = True


class _Mask(NamedTuple):
    given: torch.Tensor
    hides: bool  # its value where it hides a position


class MaskLog:
    """Looks at what hides positions from an attention or a maximum."""

    functions = frozenset(("embedding", "masked_fill", "scaled_dot_product_attention", "where"))

    def __init__(self, flow: Dataflow, errors: OwnErrors) -> None:
        """Share the calls that made the masks; what is too large is counted."""
        self._flow = flow
        self._limit = SizeLimit(errors, "mask of padding", MOST_ELEMENTS)
        self._ids: list[HiddenRef] = []
        self._seen: dict[int | None, _Seen] = {}
        self._looked_up: int | None = None  # the line of the last embedding

    def note(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call, given the frame that it is on. NOTE [What is padding]."""
        if function == "embedding":
            given: Any = argument(args, kwargs, 0, "input")
            if type(given) is torch.Tensor and len(given.shape) == 2 and given.is_cpu:
                self._ids = [*self._ids[1 - _KEPT :], HiddenRef(given)]
                self._looked_up = number
            return
        mask = _mask_of(function, args, kwargs) if self._ids else None
        rows = None if mask is None else _rows(mask.given, lambda one: self._limit.allows(one, number))
        if mask is None or rows is None:
            return
        seen = self._seen.setdefault(number, _Seen())
        if not seen.num_calls:
            seen.made = self._made_at(mask.given)
        if seen.is_inverted and seen.num_calls < MOST_CALLS:
            with unobserved():
                self._compare(seen, ops.ne(rows, mask.hides))

    def _made_at(self, mask: torch.Tensor) -> int | None:
        """Return the frame of the comparison that made a mask, whatever views and negations came after it."""
        calls, call = self._flow.calls, self._flow.read(mask).call
        while call != OUTSIDE and calls[call].name.strip("_") in _PASSED and calls[call].reads[0].call != OUTSIDE:
            call = calls[call].reads[0].call
        return None if call == OUTSIDE else calls[call].frame

    def _compare(self, seen: _Seen, left: torch.Tensor) -> None:
        """Compare what a mask leaves with the ids of the last embeddings."""
        living = [one for ref in reversed(self._ids) if (one := ref()) is not None]
        sides = [(one, side) for one in living for side in _beside(one, left)]
        with_padding = [(one, side) for one, side in sides if not _is_one(side)]
        if _is_one(left) or (sides and not with_padding):
            return  # no padding, or nothing else, in this batch
        tokens = [token for one, side in with_padding if (token := _only_token(one, side)) is not None]
        seen.num_calls += 1
        seen.is_inverted = bool(tokens) and seen.token in {None, tokens[0]}
        seen.token = tokens[0] if tokens else None

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[InvertedMask]:
        """Yield the lines where it was so in every call."""
        found: dict[object, list[tuple[int | None, _Seen]]] = {}  # by the line of the mask
        for number, seen in self._seen.items():
            if seen.is_inverted and seen.token is not None and seen.num_calls >= LEAST_CALLS:
                found.setdefault((seen.token, seen.made if seen.made is not None else -1 - len(found)), []).append(
                    (number, seen)
                )
        for (number, seen), *others in found.values():
            yield InvertedMask(
                token=seen.token or 0,
                num_calls=seen.num_calls,
                made=frame_of(seen.made),
                used=frame_of(number),
                others=tuple(line for one, _ in others if (line := frame_of(one)) is not None),
                looked_up=frame_of(self._looked_up),
            )


def _mask_of(function: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> _Mask | None:
    """Return the mask of a call that hides positions."""
    places = {"masked_fill": (1, "mask", 2, "value"), "where": (0, "condition", 2, "other")}
    if function not in places:
        given = argument(args, kwargs, 3, "attn_mask")
        return _Mask(given, hides=False) if type(given) is torch.Tensor and given.dtype == torch.bool else None
    place, name, other, value = places[function]
    given = argument(args, kwargs, place, name)
    filled = number_of(argument(args, kwargs, other, value))
    if type(given) is not torch.Tensor or given.dtype != torch.bool:
        return None
    is_hidden = filled is not None and filled <= LARGE
    return _Mask(given, hides=function == "masked_fill") if is_hidden else None


def _rows(mask: torch.Tensor, may_read: Callable[[torch.Tensor], bool]) -> torch.Tensor | None:
    """Return a mask of some positions of each row as a matrix, without axes of length 1; None if others are left."""
    long = [length for length in mask.shape if length != 1]
    if len(long) != 2 or mask.shape[0] == 1 or not mask.is_cpu or not may_read(mask):
        return None
    with unobserved():
        matrix: torch.Tensor = ops.reshape(mask, tuple(long))
        return matrix


def _beside(ids: torch.Tensor, left: torch.Tensor) -> list[torch.Tensor]:
    """Return what a mask may leave of the positions of some ids; nothing if it is about others."""
    (rows, length), (num_rows, num_positions) = ids.shape, left.shape
    added = num_positions - length
    if rows != num_rows or not 0 <= added <= MOST_ADDED:
        return []
    ends = ((left[:, added:], left[:, :added]), (left[:, :length], left[:, length:])) if added else ((left, left[:0]),)
    return [own for own, others in ends if ops.item(ops.all(ops.eq(others, others[:1])))]


def _only_token(ids: torch.Tensor, left: torch.Tensor) -> int | None:
    """Return the id that all positions have that a mask leaves, if they are padding."""
    if not is_small_and_readable(ids, MOST_ELEMENTS):
        return None
    kept, hidden = ops.masked_select(ids, left), ops.masked_select(ids, ops.logical_not(left))
    numbers = ops.to(left, torch.int8)
    steps = ops.diff(numbers)
    is_at_end = ops.item(ops.all(ops.ge(steps, 0))) or ops.item(ops.all(ops.le(steps, 0)))
    if not is_at_end or not _is_one(kept) or _is_one(hidden) or _is_one(ops.sum(numbers, 1)):
        return None
    token = ops.item(ops.max(kept))
    return None if ops.item(ops.any(ops.eq(hidden, token))) else int(token)


def _is_one(values: torch.Tensor) -> bool:
    """Return whether all values are the same."""
    return bool(ops.item(ops.eq(ops.min(values), ops.max(values))))
