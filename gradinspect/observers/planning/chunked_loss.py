"""Compute a cross-entropy in chunks, from outside: the program's own lines stay as they are.

NOTE [Logits that are not there]
The projection returns a stand-in with the shape of the logits: a number for each token, repeated along the vocabulary
by a stride of zero. Whatever views the program makes of it, their strides say which tokens they show, in which order.
When a view arrives at `cross_entropy`, the loss is computed from what the projection was given, by the code that the
plan prints. Anything else that looks at the stand-in would see no logits: then the plan cannot be carried out, and the
line is named.

Without gradients, as in a validation, logits are mostly there to be read, and are made. But where one function makes
them and computes the loss, its edit holds for all that call it.
"""

import inspect
import sys
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType
from typing import Any, NamedTuple
from weakref import ref

import torch
from torch import nn
from torch.nn import functional

from gradinspect.analyses.planning.code import CHUNKED_LOSS, PLAN_FILE, chunked_loss_code
from gradinspect.errors import GradInspectError
from gradinspect.recording.frames import line_at, line_name, user_frames
from gradinspect.recording.values.storages import plain_tensors, storage_key, storage_of
from gradinspect.torch_api.modes import FunctionMode
from gradinspect.torch_api.patching.originals import is_grad_enabled, ops
from gradinspect.torch_api.patching.replaced import asking

CONVERTS = frozenset(("float", "double", "half", "bfloat16", "to", "type", "type_as"))
_RESHAPES = frozenset(("reshape", "flatten"))
COPIES = frozenset(("contiguous", "clone")) | CONVERTS | _RESHAPES  # or return what they are given
_SIGNATURE = inspect.signature(functional.cross_entropy)
_OTHER_SUMS = ("weight", "size_average", "reduce")  # given, the sum is divided by something else, or not at all
_READS = frozenset(("item", "tolist", "numpy", "__bool__", "__float__", "__int__", "__array__"))


class _StandIn(NamedTuple):
    """What stands for some logits."""

    tokens: torch.Tensor | None  # what the projection was given, one token a row; None: the loss has taken it
    converted: torch.dtype | None  # to which the program converts the logits
    alive: Any  # reference to its storage


class ChunkedLoss(FunctionMode):
    """Stands between one projection and the loss. Use it as a context manager, around the program."""

    def __init__(
        self,
        num_chunks: int,
        failed: Callable[[Exception], None],
        is_edited: Callable[[FrameType], bool] = lambda _: False,
    ) -> None:
        """Set up.

        Args:
            num_chunks: How many parts the tokens are divided into.
            failed: Called with the reason if it cannot be done.
            is_edited: Says of what calls the projection whether it is changed for calls without gradients too.
        """
        super().__init__()
        self._num_chunks = num_chunks
        self._failed = failed
        self._is_edited = is_edited
        self._known: dict[int, _StandIn] = {}
        self._head: nn.Module | None = None
        self._is_projecting = False
        namespace: dict[str, Any] = {}
        exec(compile(chunked_loss_code(), PLAN_FILE, "exec"), namespace)  # noqa: S102  # what is printed
        self._chunked: Callable[..., Any] = namespace[CHUNKED_LOSS]

    def attach(self, head: nn.Module) -> None:
        """Wrap the forward of the projection."""
        self._head = head
        head.forward = partial(self._project, head.forward)

    def __torch_function__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Follow stand-ins from view to view, up to the loss."""
        kwargs = kwargs or {}
        found = next(self._stand_ins(args, kwargs), None) if self._known else None
        called, func = asking(func, args, kwargs, sys._getframe(1))
        if found is None:
            return called(*args, **kwargs)
        tensor, stand_in = found
        name = getattr(func, "__name__", "")
        if func is functional.cross_entropy and stand_in.tokens is not None:
            return self._loss(stand_in, stand_in.tokens, args, kwargs)
        if name in COPIES and args and args[0] is tensor:
            if name not in _RESHAPES:
                dtype = called(tensor.new_empty(()), *args[1:], **kwargs).dtype
                return tensor if dtype is tensor.dtype and name in CONVERTS else self._moved(tensor, stand_in, dtype)
            args = (self._moved(tensor, stand_in, tensor.dtype), *args[1:])
        result = called(*args, **kwargs)
        made = [part for part in plain_tensors(result) if storage_key(part) not in self._known]
        if made or name in _READS:
            self._refuse("reads the logits")
        return result

    def _stand_ins(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[torch.Tensor, _StandIn]]:
        for value in (*args, *kwargs.values()):
            for tensor in plain_tensors(value) if isinstance(value, torch.Tensor | list | tuple) else ():
                key = storage_key(tensor)
                if key in self._known:
                    yield tensor, self._known[key]

    def _project(self, forward: Callable[[torch.Tensor], torch.Tensor], hidden: torch.Tensor) -> torch.Tensor:
        """Return a stand-in for the logits."""
        if self._is_projecting or self._head is None or not (is_grad_enabled() or self._is_called_where_edited()):
            return forward(hidden)
        kind, weight = hidden.device.type, self._head.weight
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else hidden.dtype
        tokens, shape = ops.flatten(hidden, 0, -2), hidden.shape[:-1]
        return self._made(tokens, (shape, len(shape), len(weight)), dtype)

    def _is_called_where_edited(self) -> bool:
        user = next(user_frames(sys._getframe(1)), None)
        return user is not None and self._is_edited(user)

    def _made(
        self,
        tokens: torch.Tensor,
        form: tuple[torch.Size, int, int],
        dtype: torch.dtype,
        converted: torch.dtype | None = None,
    ) -> torch.Tensor:
        """Make a stand-in: its tokens have a shape, and the vocabulary is a dimension at some place, of some width."""
        shape, place, width = form
        base = ops.empty(shape, dtype=dtype, device=tokens.device)
        made = ops.expand(ops.unsqueeze(base, place), *shape[:place], width, *shape[place:])
        key, storage = storage_key(made), storage_of(made)
        if key is not None:
            self._known[key] = _StandIn(tokens, converted, ref(storage, lambda _: self._known.pop(key, None)))
        return made

    def _moved(self, tensor: torch.Tensor, stand_in: _StandIn, dtype: torch.dtype) -> torch.Tensor:
        """Make a stand-in for a copy of what a view shows."""
        place = next((number for number, stride in enumerate(ops.stride(tensor)) if not stride), None)
        if place is None or stand_in.tokens is None:
            self._refuse("takes logits apart")
            return tensor
        shown = ops.select(tensor, place, 0)
        converted = stand_in.converted if dtype is tensor.dtype else dtype
        tokens = _shown_tokens(stand_in.tokens, shown)
        return self._made(tokens, (shown.shape, place, tensor.shape[place]), dtype, converted)

    def _loss(self, stand_in: _StandIn, tokens: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Compute the loss in chunks."""
        given = _SIGNATURE.bind(*args, **kwargs)
        given.apply_defaults()
        logits, target = given.arguments["input"], given.arguments["target"]
        is_plain = all(given.arguments[name] is None for name in _OTHER_SUMS) and given.arguments["reduction"] != "none"
        if not is_plain or ops.is_floating_point(target) or ops.dim(logits) < 2 or ops.stride(logits, 1):
            self._refuse("computes another loss than the mean or the sum over tokens")
            return functional.cross_entropy(*args, **kwargs)
        self._known = {key: known._replace(tokens=None) for key, known in self._known.items()}  # others may let it go
        return self._chunked(
            partial(self._projected, stand_in.converted),
            _shown_tokens(tokens, logits.select(1, 0)),
            target.reshape(-1),
            chunks=self._num_chunks,
            **{name: given.arguments[name] for name in ("ignore_index", "reduction", "label_smoothing")},
        )

    def _projected(self, dtype: torch.dtype | None, tokens: torch.Tensor) -> Any:
        """Compute the logits of some tokens."""
        self._is_projecting = True
        try:
            logits = None if self._head is None else self._head(tokens)
        finally:
            self._is_projecting = False
        return logits if dtype is None or logits is None else logits.to(dtype)

    def _refuse(self, what: str) -> None:
        """Say that something but the loss takes the logits."""
        user = next(user_frames(sys._getframe(1)), None)
        where = "The program" if user is None else line_name(user.f_code.co_filename, line_at(user))
        self._failed(GradInspectError(f"{where} {what}, which a loss in chunks does not make."))


def _shown_tokens(tokens: torch.Tensor, shown: torch.Tensor) -> torch.Tensor:
    """Take the tokens that a view of one number for each shows, in its order."""
    if ops.is_contiguous(shown) and ops.numel(shown) == len(tokens):
        return tokens
    places = ops.arange(len(tokens), device=tokens.device)
    return tokens[ops.reshape(ops.as_strided(places, shown.shape, ops.stride(shown), ops.storage_offset(shown)), (-1,))]
