"""How far apart the tokens are that a language model is given and those that its scores are compared with.

NOTE [The distance of a token]
A language model is given a token at each place, and its score there is that of the next one. Whether the program shifts
its labels once, twice or in the wrong direction shows in the ids: those that an embedding was given, those that the
loss is given, and how many scores were left out at the front. The distance of two tokens is reported where no other
loss of the program predicts the next one, as a model with several heads does. A distance of zero is reported only where
the model sees no later token: an encoder, or an autoencoder, may well be asked for what it is given. The token before
is asked for on purpose in tests of memory, so a negative distance counts only where scores were left out at the front.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from msgspec import Struct

from gradinspect.checks.evidence.arguments.given import argument
from gradinspect.checks.evidence.arguments.recurrent_axes import RECURRENT, is_padded
from gradinspect.checks.evidence.targets.later_tokens import LaterTokens
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.evidence.values.result_states import SizeLimit
from gradinspect.checks.facts.targets import NextTokenRead, TokenOffset
from gradinspect.checks.facts.value_flow import NO_LEAF, OUTSIDE, ancestors
from gradinspect.graph import Frame
from gradinspect.recording.transparency.own_errors import OwnErrors
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.originals import ops

LEAST_CALLS = 3  # of a line
MOST_CALLS = 20
MOST_ELEMENTS = 65_536
_KEPT = 6  # lookups whose ids are kept
_LEAST_COMPARED = 12
_DISTANCES = range(-2, 4)
_SHAPES = frozenset((
    "view", "reshape", "flatten", "contiguous", "transpose", "permute", "float", "to", "log_softmax", "mT", "movedim",
))  # fmt: skip
_IN_ORDER = frozenset((*RECURRENT, "scaled_dot_product_attention"))  # may read a place and those before it
_SAME_PLACES = _SHAPES | frozenset(("linear", "dropout", "layer_norm", "relu", "gelu", "tanh", "getitem", "matmul"))


class _Lookup(NamedTuple):
    call: int
    ids: torch.Tensor  # a copy
    frame: int | None


class _Seen(Struct):
    """All calls of a loss on a line."""

    distances: frozenset[int] = frozenset(_DISTANCES)
    num_calls: int = 0
    looked_up: int | None = None
    cut: int | None = None
    is_causal: bool = True
    num_told: int = 0  # calls in which an attention reads the next token
    attended: int | None = None
    op: str = ""  # the class of an RNN that reads in both directions
    is_rolled: bool = False  # the last target is the first token


class TokenLog:
    """Looks at ids. NOTE [The distance of a token]."""

    functions = frozenset((
        *RECURRENT,
        "embedding", "cross_entropy", "nll_loss", "getitem", "scaled_dot_product_attention", *LaterTokens.functions,
    ))  # fmt: skip

    def __init__(self, flow: Dataflow, errors: OwnErrors) -> None:
        """Share the calls that made the scores; what is too large is counted."""
        self._flow = flow
        self._limit = SizeLimit(errors, "batch of token ids", MOST_ELEMENTS)
        self._lookups: list[_Lookup] = []
        self._starts: dict[int, int] = {}  # by the call of a slice, how many places it leaves out at the front
        self._causal: set[int] = set()  # calls that mix places, and read no later ones
        self._seen: dict[int | None, _Seen] = {}
        self._later = LaterTokens(flow)
        self._both: set[int] = set()  # calls of RNNs that read in both directions

    def note(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call that has returned, given the frame that it is on."""
        given: Any = argument(args, kwargs, 0, "input")
        if function in LaterTokens.functions and self._lookups:
            self._later.note(function, args, kwargs, number)
        if type(given) is not torch.Tensor:
            return
        place = len(self._flow.calls)
        if function == "getitem":
            start = _start_of(args[1]) if given.requires_grad and len(given.shape) > 2 else 0
            if start:
                self._starts[place] = start
        elif function == "embedding":
            self._look_up(given, place, number)
        elif function in ("cross_entropy", "nll_loss"):
            self._compare(given, argument(args, kwargs, 1, "target"), number)
        else:
            self._mix(function, args, kwargs, place)

    def _mix(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any], place: int) -> None:
        """Note a call that reads several places for each."""
        if function in _IN_ORDER and _is_causal(function, args, kwargs):
            self._causal.add(place)
        elif function in RECURRENT and is_padded(args) and args[7] is args[8] is True:  # with the batch first
            self._both.add(place)

    def _look_up(self, ids: torch.Tensor, place: int, number: int | None) -> None:
        is_batch = len(ids.shape) == 2 and ids.shape[1] > 3 and not ops.is_floating_point(ids)
        if is_batch and self._limit.allows(ids, number):
            with unobserved():
                self._lookups = [*self._lookups[1 - _KEPT :], _Lookup(place, ops.clone(ids), number)]

    def _compare(self, scores: torch.Tensor, target: Any, number: int | None) -> None:
        if not (self._lookups and scores.requires_grad) or type(target) is not torch.Tensor:
            return
        seen = self._seen.setdefault(number, _Seen())
        if not seen.distances or seen.num_calls >= MOST_CALLS or ops.is_floating_point(target):
            return
        if not self._limit.allows(target, number):
            seen.distances = frozenset()
            return
        start, cut, made = self._first_place(scores)
        behind = ancestors(self._flow.calls, made, stops_at_leaves=True)
        lookups = [one for one in self._lookups if one.call in behind]
        with unobserved():
            found = [_distances(one.ids, ops.detach(target), start) for one in lookups]
        near = [one for one, distances in zip(lookups, found, strict=True) if distances & seen.distances]
        seen.num_calls += 1
        seen.distances &= frozenset().union(*found)
        if near:
            seen.looked_up, seen.cut = near[-1].frame, cut
            seen.is_causal = seen.is_causal and self._sees_no_later(made, behind, near[-1].call)
            if seen.distances == {1}:
                self._look_ahead(seen, near[-1], made, behind, target)

    def _look_ahead(self, seen: _Seen, lookup: _Lookup, made: int, behind: set[int], target: torch.Tensor) -> None:
        """Note whether a score was computed from the very token that it is compared with."""
        rows, length = lookup.ids.shape
        read = self._later.before(behind, lookup.call, length)
        both = OUTSIDE if read is not None else self._reads_both_ways(made)
        with unobserved():
            last = ops.reshape(ops.detach(target), (rows, -1))[:, -1]
            seen.is_rolled = seen.is_rolled or bool(ops.item(ops.all(ops.eq(last, lookup.ids[:, 0]))))
        if read is not None:
            seen.num_told, seen.attended = seen.num_told + 1, read.frame
        elif both != OUTSIDE:
            one = self._flow.calls[both]
            seen.num_told, seen.attended, seen.op = seen.num_told + 1, one.frame, RECURRENT[one.name]

    def _reads_both_ways(self, made: int) -> int:
        """Return the call of an RNN that reads in both directions, all of whose features come to some scores."""
        calls, call = self._flow.calls, made
        while call != OUTSIDE and call not in self._both:
            live = [one for one in calls[call].reads if one.leads_back and one.leaf == NO_LEAF]
            is_whole = calls[call].name.strip("_") in _SAME_PLACES - {"getitem"} and len(live) == 1
            call = live[0].call if is_whole else OUTSIDE
        return call

    def _first_place(self, scores: torch.Tensor) -> tuple[int, int | None, int]:
        """Return how many places were left out before the first score, where, and the call that made all."""
        calls, call, start, cut = self._flow.calls, self._flow.read(scores).call, 0, None
        while call != OUTSIDE and calls[call].name.strip("_") in _SHAPES | {"getitem"} and calls[call].reads:
            if call in self._starts:
                start, cut = start + self._starts[call], calls[call].frame
            call = calls[call].reads[0].call
        return start, cut, call

    def _sees_no_later(self, made: int, behind: set[int], lookup: int) -> bool:
        """Return whether each score was computed from the tokens up to its place alone."""
        if self._causal & behind and not any(self._flow.calls[one].name in RECURRENT for one in behind):
            return True  # an attention
        calls, call = self._flow.calls, made
        while call not in {OUTSIDE, lookup}:
            name = calls[call].name.strip("_")
            if name not in _SAME_PLACES and call not in self._causal:
                return False
            live = [one for one in calls[call].reads if one.leads_back and one.leaf == NO_LEAF]
            call = live[0].call if live else OUTSIDE
        return call == lookup and bool(self._causal & behind)

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[TokenOffset | NextTokenRead]:
        """Yield the lines where the distance is another one in every call, or the next token is read."""
        for number, seen in self._seen.items():
            if seen.num_told == seen.num_calls >= LEAST_CALLS and not seen.is_rolled:
                yield NextTokenRead(
                    op=seen.op, num_calls=seen.num_calls, looked_up=frame_of(seen.looked_up),
                    attended=frame_of(seen.attended), used=frame_of(number),
                )  # fmt: skip
        known = [one for one in self._seen.values() if one.num_calls >= LEAST_CALLS and one.distances]
        if any(1 in one.distances for one in known):
            return
        for number, seen in self._seen.items():
            distance = max(seen.distances, default=1)
            is_meant = (distance < 0 and seen.cut is None) or (distance == 0 and not seen.is_causal)
            if seen in known and not is_meant:
                yield TokenOffset(
                    distance=distance, num_calls=seen.num_calls, looked_up=frame_of(seen.looked_up),
                    cut=frame_of(seen.cut), used=frame_of(number),
                )  # fmt: skip


def _start_of(index: Any) -> int:
    """Return how many places an index leaves out at the front of axis 1."""
    parts = list(index) if isinstance(index, tuple) else [index]
    if parts[:1] == [...]:
        parts = [slice(None), *parts[1:-1], slice(None)] if len(parts) == 3 else []
    one = parts[1] if len(parts) > 1 else None
    is_slice = isinstance(one, slice) and one.step in {None, 1} and type(one.start) is int
    return max(0, one.start) if is_slice and parts[0] == slice(None) else 0  # type: ignore[union-attr]  # it is one


def _is_causal(function: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Return whether what a call returns at a place was computed from that and earlier ones."""
    if function in RECURRENT:
        return is_padded(args) and args[7] is False  # bidirectional
    return bool(kwargs.get("is_causal", args[5] if len(args) > 5 else False))


def _distances(ids: torch.Tensor, target: torch.Tensor, start: int) -> frozenset[int]:
    """Return the distances at which all targets that count are the ids that were given."""
    rows, length = ids.shape
    places = ops.numel(target) // rows
    if places * rows != ops.numel(target) or not 3 < places <= length or not ids.is_cpu or not target.is_cpu:
        return frozenset()
    wanted = ops.reshape(target, (rows, places))
    found = set()
    for distance in _DISTANCES:
        first = start + distance
        skipped, end = max(0, -first), min(places, length - first)
        if end - skipped < 1:
            continue
        mine, its = wanted[:, skipped:end], ids[:, first + skipped : first + end]
        counts = ops.ge(mine, 0)
        agree = ops.logical_or(ops.eq(mine, its), ops.logical_not(counts))
        if ops.item(ops.sum(counts)) >= _LEAST_COMPARED and ops.item(ops.all(agree)):
            found.add(distance)
    return frozenset(found) if len(found) == 1 else frozenset()
