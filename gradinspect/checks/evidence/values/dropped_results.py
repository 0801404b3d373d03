"""Calls whose result is thrown away, although it is all that they do: `x.detach()` as a statement of its own.

NOTE [Dropped results]
The instruction after a call says what becomes of its result: POP_TOP drops it. Each line is looked at once. Benchmarks
drop results too, so a call counts only if backward reaches the tensor that it was given, as it was before the call.
Data has no graph: of what is computed from it for nothing, only that counts which moves or casts it, gives it another
shape or another range, and only if an operator that makes a graph then reads the same tensor. x.cpu() may be there to
wait for a device.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dis import get_instructions, opmap
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any, NamedTuple

import torch
from torch.jit import is_tracing

from gradinspect.checks.facts.value_flow import short_name
from gradinspect.recording.frames import is_own_file
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.values.storages import storage_key
from gradinspect.torch_api.modes import HANDLE_TORCH_FUNCTION
from gradinspect.torch_api.tensors import grad_fn_of
from gradinspect.torch_api.weak import HiddenRef

# Out-of-place functions of which the result is the only effect, and which people expect to change the tensor.
_PURE = frozenset((
    "detach", "clamp", "clamp_min", "clamp_max", "clip", "nan_to_num", "masked_fill", "masked_scatter",
    "index_fill", "index_add", "index_copy", "index_put", "scatter", "scatter_add", "where",
    "add", "sub", "mul", "div", "pow", "neg", "abs", "square", "sqrt", "exp", "log", "renorm", "normalize",
    "relu", "relu6", "leaky_relu", "elu", "gelu", "silu", "sigmoid", "tanh", "softplus", "softmax", "log_softmax",
    "dropout",
))  # fmt: skip
_PREPARES = frozenset((  # these of data as well
    "to", "cuda", "float", "double", "half", "bfloat16", "long", "int", "type", "unsqueeze", "squeeze", "transpose",
    "permute", "view", "reshape", "flatten", "clamp", "clamp_min", "clamp_max", "clip", "nan_to_num", "masked_fill",
    "normalize",
))  # fmt: skip
_MAX_PENDING = 1_000
_CACHE, _POP_TOP = bytes([opmap["CACHE"]]), bytes([opmap["POP_TOP"]])


class Dropped(NamedTuple):
    """A call whose result was dropped."""

    name: str
    frame: int | None
    loop_variables: tuple[str, ...]  # of the function that calls it
    is_data: bool  # what it was given has no graph


class _Data(NamedTuple):
    """A dropped call on data, and the data."""

    dropped: Dropped
    tensor: HiddenRef


class _Pending(NamedTuple):
    """A dropped call, and where the tensor that it was given comes from."""

    dropped: Dropped
    number: int | None  # of the node that made it
    leaf: HiddenRef | None  # itself, if none made it


class DroppedResults:
    """Tracks the calls whose results were dropped. The log of calls and the observer call it with what they see."""

    def __init__(self, recorder: Recorder) -> None:
        """Share the recorder's frames."""
        self._recorder = recorder
        self.used: set[tuple[int, int]] = set()  # (id of code, instruction) of calls whose result is used
        self._codes: dict[int, CodeType] = {}  # kept, so that no other one gets its id
        self.data: dict[int, list[_Data]] = {}  # by the ids of the data; what reads it next is told to `read`
        self._read: list[Dropped] = []
        self._pending: list[_Pending] = []

    def look(self, name: str, given: Sequence[torch.Tensor], result: object, frame: FrameType) -> None:
        """Look at a call of a pure function, unless it is known to be used."""
        caller = _caller(frame)
        if caller is None:
            return
        code, offset = caller.f_code, caller.f_lasti
        if (id(code), offset) in self.used:
            return
        if not is_own_file(code.co_filename) or not drops_result(code, offset):
            self._codes[id(code)] = code
            self.used.add((id(code), offset))
            return
        tensor = given[0] if given else None
        if tensor is None or result is tensor or not (tensor.requires_grad or _changes(name, tensor, result)):
            return
        if len(self._pending) + len(self.data) >= _MAX_PENDING:
            self._recorder.errors.pass_over("result without a use", f"after {_MAX_PENDING:,} others")
            return
        node = grad_fn_of(tensor)
        line, is_data = self._recorder.frames.number_of(caller), not tensor.requires_grad
        dropped = Dropped(short_name(name), line, loop_variables(code), is_data)
        if is_data:
            self.data.setdefault(id(tensor), []).append(_Data(dropped, HiddenRef(tensor)))
            return
        leaf = HiddenRef(tensor) if node is None else None
        self._pending.append(_Pending(dropped, None if node is None else self._recorder.others.identity_of(node), leaf))

    def read(self, tensors: Sequence[torch.Tensor]) -> None:
        """Look at what an operator reads that makes a graph; called only while there is `data`."""
        for tensor in tensors:
            known = self.data.pop(id(tensor), ())
            self._read += [one.dropped for one in known if one.tensor() is tensor]

    def reached(self, nodes: AbstractSet[int], leaves: frozenset[int]) -> Iterator[Dropped]:
        """Yield the calls that were given what backward is about to go through.

        Args:
            nodes: The identities of its nodes.
            leaves: The ids of its leaves.
        """
        yield from self._read
        self._read = []
        waiting = []
        for one in self._pending:
            if one.number in nodes or (one.leaf is not None and id(one.leaf()) in leaves):
                yield one.dropped
            else:
                waiting.append(one)
        self._pending = waiting


def is_pure(name: str) -> bool:
    """Return whether a function does nothing but return its result."""
    return short_name(name) in _PURE | _PREPARES and not name.endswith("__")


def _changes(name: str, data: torch.Tensor, result: Any) -> bool:
    """Return whether a function on data was to prepare it; squeeze() of what has no axis of length 1 does nothing."""
    if short_name(name) not in _PREPARES or type(result) is not torch.Tensor:
        return False
    if is_tracing():
        return False
    is_as_before = storage_key(data) == storage_key(result) and data.shape == result.shape
    return not is_as_before


def drops_result(code: CodeType, offset: int) -> bool:
    """Return whether the result of the call at an instruction is dropped.

    While a function written in Python runs, its caller may be at the cache entries behind the instruction. Only what
    follows is read: a function that was generated may have a hundred thousand instructions, and a call at each.
    """
    following = code.co_code[offset + 2 :: 2]  # an opcode, and a byte for its argument
    return following.lstrip(_CACHE)[:1] == _POP_TOP


@lru_cache(maxsize=1024)
def loop_variables(code: CodeType) -> tuple[str, ...]:
    """Name what the `for` loops of a function assign."""
    names: dict[str, None] = {}
    is_target = False
    for one in get_instructions(code):
        is_target = one.opname == "FOR_ITER" or (is_target and one.opname.startswith(("UNPACK", "STORE", "CACHE")))
        if is_target and one.opname.startswith("STORE"):
            stored = one.argval if isinstance(one.argval, tuple) else (one.argval,)
            names |= dict.fromkeys(map(str, stored))
    return tuple(names)


def _caller(frame: FrameType) -> FrameType | None:
    """Return the frame that called a function, also one that is written in Python: it calls torch's handler."""
    if frame.f_code is HANDLE_TORCH_FUNCTION and frame.f_back is not None:
        return frame.f_back.f_back
    return frame
