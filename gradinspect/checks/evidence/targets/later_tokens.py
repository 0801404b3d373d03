"""Attentions that let a place of a sequence read the next one.

NOTE [Where the next token is read]
The score at a place is that of the next token, so nothing before the score may read that token: an attention needs a
mask above its diagonal. Its weights are known without a mask, since a softmax leaves none at zero; from a mask; or from
their values, where the program multiplies them itself. What counts is the first place above the diagonal, all along
it: a prefix that is read in both directions on purpose leaves the rest masked. The queries and the keys must come from
the tokens that are predicted; a memory of other tokens may be read as a whole.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch

from gradinspect.checks.evidence.arguments.given import argument
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.evidence.values.result_states import is_small_and_readable
from gradinspect.checks.facts.value_flow import OUTSIDE, Read, ancestors
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.originals import ops

MOST_LOOKED = 200  # products and masks whose values are read
MOST_ELEMENTS = 1 << 18  # of one
_LEAST_LENGTH = 4
_HIDDEN = -1e3  # scores below this leave a weight of zero
_PRODUCTS = frozenset(("matmul", "bmm", "einsum"))
_MULTI_HEAD = "multi_head_attention_forward"
_SCALED = "scaled_dot_product_attention"
_WEIGHED = frozenset((
    "softmax", "dropout", "mul", "div", "truediv", "masked_fill", "where", "tril", "to", "float", "view", "reshape",
    "nan_to_num", "unsqueeze", "squeeze", "contiguous", "expand",
))  # fmt: skip
_SCORES = _WEIGHED | frozenset(("add", "sub", "iadd", "transpose", "getitem"))
_MOVES = frozenset(("transpose", "permute", "swapaxes", "swapdims", "movedim"))
_MOST_STEPS = 12
_FAR = 200  # calls from a query back to its tokens


class LaterRead(NamedTuple):
    """An attention in which each place reads the next one."""

    frame: int | None
    length: int  # of the sequence
    sides: tuple[int, ...]  # the calls that made its queries and keys
    is_square: bool = False  # as many sequences as places: which axis is which, the shape does not say


class LaterTokens:
    """Looks at attentions. NOTE [Where the next token is read]."""

    functions = _PRODUCTS | frozenset((_MULTI_HEAD, _SCALED))

    def __init__(self, flow: Dataflow) -> None:
        """Share the calls that made queries and keys."""
        self._flow = flow
        self._num_looked = 0
        self.seen: dict[int, LaterRead] = {}  # by the call

    def note(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call that has returned, given the frame that it is on."""
        args = _operands(args) if function == "einsum" else args
        first, second = argument(args, kwargs, 0, "query"), argument(args, kwargs, 1, "key")
        if type(first) is not torch.Tensor or type(second) is not torch.Tensor:
            return
        if function in _PRODUCTS:
            length, sides = self._weights(first)
        elif function == _MULTI_HEAD:
            length = _length_of_all(first, second, kwargs)
            sides = self._made(first, second)
        else:
            length = _length_of_heads(first, second, args, kwargs)
            sides = self._made(first, second)
        if length >= _LEAST_LENGTH and sides and self._mask_shows(argument(args, kwargs, 3, "attn_mask"), function,
                                                                  kwargs):  # fmt: skip
            is_square = function == _MULTI_HEAD and first.shape[0] == first.shape[1]
            self.seen[len(self._flow.calls)] = LaterRead(number, length, sides, is_square)

    def _made(self, *tensors: torch.Tensor) -> tuple[int, ...]:
        found = tuple(self._flow.read(one).call for one in tensors)
        return () if OUTSIDE in found else found

    def _weights(self, first: torch.Tensor) -> tuple[int, tuple[int, ...]]:
        """Return how long a sequence is whose weights are multiplied, and what made queries and keys; else 0."""
        shape = first.shape
        if len(shape) < 2 or shape[-1] != shape[-2] or shape[-1] < _LEAST_LENGTH or not first.requires_grad:
            return 0, ()
        softmax = self._back_to("softmax", self._flow.read(first), _WEIGHED)
        product = None if softmax is None else self._back_to("", self._flow.calls[softmax].reads[0], _SCORES)
        if product is None or not self._reads_next(first):
            return 0, ()
        return int(shape[-1]), tuple(read.call for read in self._flow.calls[product].reads)

    def _back_to(self, name: str, read: Read, way: frozenset[str]) -> int | None:
        """Return the first call of a name behind a value, or without one the first product; None on another way."""
        calls, call = self._flow.calls, read.call
        for _ in range(_MOST_STEPS):
            if call == OUTSIDE:
                return None
            kind = calls[call].name.strip("_")
            if kind == name or (not name and kind in _PRODUCTS):
                return call
            live = [one for one in calls[call].reads if one.leads_back]
            if kind not in way or len(live) != 1:
                return None
            call = live[0].call
        return None

    def _reads_next(self, weights: torch.Tensor) -> bool:
        """Return whether each place but the last has a weight for the next one."""
        if self._num_looked >= MOST_LOOKED or not is_small_and_readable(weights, MOST_ELEMENTS):
            return False
        self._num_looked += 1
        with unobserved():
            length = weights.shape[-1]
            whole = ops.reshape(ops.detach(weights), (-1, length, length))
            next_ones = ops.diagonal(ops.ne(whole, 0), 1, 1, 2)
            return bool(ops.item(ops.all(ops.any(next_ones, 0))))

    def _mask_shows(self, mask: Any, function: str, kwargs: Mapping[str, Any]) -> bool:
        """Return whether a mask, if there is one, lets each place read the next one."""
        if function in _PRODUCTS:
            return True
        mask = kwargs.get("attn_mask") if function == _MULTI_HEAD else mask
        if mask is None:
            return True
        if type(mask) is not torch.Tensor or len(mask.shape) < 2 or mask.shape[-1] != mask.shape[-2]:
            return False
        if mask.dtype is not torch.bool:
            with unobserved():
                return self._reads_next(ops.gt(ops.detach(mask), _HIDDEN))
        with unobserved():
            return self._reads_next(ops.logical_not(mask) if function == _MULTI_HEAD else mask)

    def before(self, behind: set[int], lookup: int, length: int) -> LaterRead | None:
        """Return an attention among some calls whose queries and keys come from a lookup of tokens."""
        for call in sorted(self.seen.keys() & behind):
            one = self.seen[call]
            if one.length != length or not all(self._is_from(side, lookup) for side in one.sides):
                continue
            if not one.is_square or self._is_turned(one.sides[0], lookup):
                return one
        return None

    def _is_turned(self, query: int, lookup: int) -> bool:
        """Return whether two axes have changed places between tokens and queries: time is on axis 0 then."""
        calls, call, num_moves = self._flow.calls, query, 0
        for _ in range(_FAR):
            if call in {OUTSIDE, lookup}:
                break
            num_moves += calls[call].name.strip("_") in _MOVES
            call = calls[call].reads[0].call if calls[call].reads else OUTSIDE
        return call == lookup and num_moves % 2 == 1

    def _is_from(self, side: int, lookup: int) -> bool:
        return side == lookup or lookup in ancestors(self._flow.calls, side, stops_at_leaves=True)


def _operands(args: Sequence[Any]) -> Sequence[Any]:
    """Return the two operands of an einsum that sums over the last axis of the first, as over the keys of weights."""
    if len(args) != 3 or type(args[0]) is not str:
        return ()
    given, _, result = args[0].replace(" ", "").partition("->")
    first = given.split(",")[0]
    return args[1:] if result and first[-1:] not in {"", *result} and first[-2:-1] in result else ()


def _length_of_all(query: torch.Tensor, key: torch.Tensor, kwargs: Mapping[str, Any]) -> int:
    """Return the length of a sequence that attends to itself, with time on axis 0; 0 if it does not."""
    is_own = len(query.shape) == 3 and query.shape == key.shape
    return int(query.shape[0]) if is_own and not kwargs.get("is_causal") else 0


def _length_of_heads(query: torch.Tensor, key: torch.Tensor, args: Sequence[Any], kwargs: Mapping[str, Any]) -> int:
    """Return the length of a sequence that attends to itself, with time on the last axis but one."""
    is_causal = kwargs.get("is_causal", args[5] if len(args) > 5 else False)
    is_own = len(query.shape) >= 3 and query.shape[-2] == key.shape[-2]
    return int(query.shape[-2]) if is_own and not is_causal else 0
