"""Modes that intercept torch functions, and torch's stack of them."""

import sys
from collections.abc import Callable
from contextlib import nullcontext
from types import FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from gradinspect.torch_api.devices.own_work import own_work
from gradinspect.torch_api.patching.originals import is_grad_enabled, set_grad_enabled
from gradinspect.torch_api.patching.patches import Patch
from gradinspect.torch_api.patching.unlisted import MODE_STACK
from gradinspect.torch_api.probes import private

_NO_CALLS = "source lines are not shown, and the flow of values is not tracked"
_PLAIN = private("torch._C.DisableTorchFunction", "nothing can be read", is_essential=True)
_PUSH = private("torch.overrides._push_mode", _NO_CALLS)
_POP = private("torch.overrides._pop_mode", _NO_CALLS)
_CURRENT = private("torch.overrides._get_current_function_mode", _NO_CALLS)
_LENGTH = private("torch._C._len_torch_function_stack", _NO_CALLS)
_HANDLE = private("torch.overrides.handle_torch_function.__code__", "frames of torch may appear in tracebacks")
_DISPATCH = private("torch.utils._python_dispatch.TorchDispatchMode", "some operators fail on fake tensors")
_COUNTERS = "torch._dynamo.utils"  # never imported by us: a program that compiles has imported it
_HAS_STACK = _PUSH.is_there and _POP.is_there and _CURRENT.is_there and _LENGTH.is_there
_NO_DISPATCH = private("torch._C._DisableTorchDispatch", "dispatch modes of the program see our operators")
_NUM_DISPATCH = private("torch._C._len_torch_dispatch_stack", "dispatch modes of the program may see our operators")
_RECORDING = private("torch._C._autograd._enable_record_function", "a profiler sees our operators")
_IS_PROFILING = private("torch._C._autograd._profiler_enabled", "a profiler sees our operators")
_CAN_HIDE_FROM_PROFILER = _RECORDING.is_there and _IS_PROFILING.is_there
_WITHOUT_DYNAMO = private("torch._disable_dynamo", "checkpointed blocks inside compiled code are not compared")


_END = TorchFunctionMode.__exit__.__code__
_plain_functions: Callable[[], Any] = _PLAIN.or_refuse()
without_dispatch_modes: Callable[[], Any] = _NO_DISPATCH.or_else(nullcontext)
_num_dispatch_modes: Callable[[], int] = _NUM_DISPATCH.or_else(lambda: 1)  # there may be one


class _NoDispatchMode:
    """Replaces TorchDispatchMode where torch has none: it sees nothing."""

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_error: object) -> None:
        pass


_Mode: Any = _DISPATCH.or_else(_NoDispatchMode)


class FunctionMode(TorchFunctionMode):
    """The base of our function modes, which begins and ends without what a program puts into that of torch.

    NOTE [Our own calls] in `originals`.
    """

    __init__ = TorchFunctionMode.__init__
    __enter__ = TorchFunctionMode.__enter__
    __exit__ = TorchFunctionMode.__exit__


class TorchDispatchMode(_Mode):
    """The base of our dispatch modes, as `FunctionMode`."""

    __init__ = _Mode.__init__
    __enter__ = _Mode.__enter__
    __exit__ = _Mode.__exit__

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Have each operator call the mode itself: while a mode is active, dynamo compiles no frame anyway."""
        return False


HANDLE_TORCH_FUNCTION = _HANDLE.or_else(None)


def frame_above() -> FrameType:
    """Return the frame that has called the caller's: its own if that was C++, as on a thread of a device."""
    try:
        return sys._getframe(2)
    except ValueError:
        return sys._getframe(1)


def require_function_modes(by: str) -> None:
    """Check that calls of torch functions can be intercepted.

    Raises:
        GradInspectError: This torch does not allow pushing a mode.
    """
    for name in (_PUSH, _POP, _CURRENT, _LENGTH):
        name.required(by)


def require_dispatch_modes(by: str) -> None:
    """Check that operators can be intercepted.

    Raises:
        GradInspectError: This torch does not allow it.
    """
    _DISPATCH.required(by)


def push_function_mode(mode: TorchFunctionMode) -> None:
    """Push a mode on this thread's stack, unless torch would not let us pop it again."""
    if _HAS_STACK:
        _PUSH.value(mode)


def remove_function_mode(mode: TorchFunctionMode) -> bool:
    """Remove a mode from this thread's stack, wherever it is, and return whether it was there.

    Blocks may end in another order than that in which they began, so other modes may be above.
    """
    if not _HAS_STACK or not is_on_stack(mode):
        return False
    above: list[Any] = []
    while _LENGTH.value() and (not above or above[-1] is not mode):
        above.append(_POP.value())
    is_there = bool(above) and above[-1] is mode
    for other in reversed(above[:-1] if is_there else above):
        _PUSH.value(other)
    return is_there


def take_function_mode(mode: TorchFunctionMode) -> int | None:
    """Take a mode out of this thread's stack, wherever it is, and return how many are above it; None if it is not."""
    above: list[Any] = []
    if not _HAS_STACK or not is_on_stack(mode):
        return None
    while _LENGTH.value():
        top = _POP.value()
        if top is mode:
            break
        above.append(top)
    for one in reversed(above):
        _PUSH.value(one)
    return len(above)


def put_function_mode(mode: TorchFunctionMode, num_above: int) -> None:
    """Put a mode back into this thread's stack, below `num_above` others."""
    above = [_POP.value() for _ in range(min(num_above, _LENGTH.value()))]
    _PUSH.value(mode)
    for one in reversed(above):
        _PUSH.value(one)


def modes_end_themselves() -> Patch:
    """Let a mode of the program that ends below one of ours, as ours began later, take off itself and not ours."""
    return Patch(torch.overrides, "_pop_mode", _popping)


def _popping(original: Callable[[], Any]) -> Callable[[], Any]:
    def _pop_mode() -> Any:
        if torch.compiler.is_compiling():  # must come first: torch.compile traces what follows, and guards on it
            return original()
        caller = sys._getframe(1)
        if caller.f_code is _END and MODE_STACK.is_there and isinstance(MODE_STACK.value()[-1], FunctionMode):
            ending = caller.f_locals["self"]
            if take_function_mode(ending) is not None:
                return ending
        return original()

    return _pop_mode


def num_function_modes() -> int:
    """Count the modes on this thread's stack."""
    return int(_LENGTH.value()) if _LENGTH.is_there else 0


def unobserved() -> Any:
    """Return a context manager in which our computations with tensors are unobserved by the program.

    No gradient is recorded; modes and subclasses, of torch functions and of operators, are not called; a profiler
    records nothing. Tensors whose class implements the operators must not be used: they may have no memory of their
    own.
    """
    if is_grad_enabled() or _num_dispatch_modes() or (_CAN_HIDE_FROM_PROFILER and _IS_PROFILING.value()):
        return Unobserved()
    return _plain_functions()  # inside backward nothing else is there to hide from


def nothing_looks() -> bool:
    """Return whether no dispatch mode and no profiler would see an operator that is called here."""
    return not (_num_dispatch_modes() or (_CAN_HIDE_FROM_PROFILER and _IS_PROFILING.value()))


def unseen() -> "Unobserved":
    """Do the same, and leave it to autograd whether gradients are recorded."""
    return Unobserved(records=True)


def has_dispatch_modes() -> bool:
    """Return whether a mode is active that is called for each operator of this thread."""
    return _NUM_DISPATCH.is_there and bool(_NUM_DISPATCH.value())


class Unobserved:
    """Hides from everything in the program that could observe a computation."""

    __slots__ = ("_functions", "_is_profiling", "_operators", "_own", "_records", "_was_on")

    def __init__(self, *, records: bool = False) -> None:
        """Choose whether gradients may be recorded."""
        self._records = records

    def __enter__(self) -> None:
        """Hide from the program."""
        self._functions = _plain_functions()
        self._functions.__enter__()
        self._operators = without_dispatch_modes() if _num_dispatch_modes() else None  # the most expensive part
        if self._operators is not None:
            self._operators.__enter__()
        self._was_on = not self._records and is_grad_enabled()
        if self._was_on:
            set_grad_enabled(False)
        self._is_profiling = _CAN_HIDE_FROM_PROFILER and bool(_IS_PROFILING.value())
        self._own = own_work.range() if self._is_profiling else None
        if self._own is not None:
            self._own.__enter__()
        if self._is_profiling:
            _RECORDING.value(False)

    def __exit__(self, *error: object) -> None:
        """Become visible again."""
        if self._is_profiling:
            _RECORDING.value(True)
        if self._own is not None:
            self._own.__exit__(*error)
        if self._was_on:
            set_grad_enabled(True)
        if self._operators is not None:
            self._operators.__exit__(*error)
        self._functions.__exit__(*error)


def computes_by_itself(tensor: torch.Tensor) -> bool:
    """Return whether a tensor's class implements every operator itself."""
    if type(tensor) is torch.Tensor:
        return False
    own = getattr(type(tensor), "__torch_dispatch__", None)
    return own is not getattr(torch.Tensor, "__torch_dispatch__", None)


def is_on_stack(mode: TorchFunctionMode) -> bool:
    """Return whether a mode would now intercept a torch function called on this thread."""
    return not MODE_STACK.is_there or any(one is mode for one in MODE_STACK.value())


def has_compiled() -> bool:
    """Return whether torch.compile has compiled anything, which is then guarded on the active modes."""
    counters = getattr(sys.modules.get(_COUNTERS), "counters", None)
    return counters is not None and bool(counters["frames"]["total"])


def out_of_dynamo(function: Any) -> Any:
    """Keep torch.compile from tracing one of our functions."""
    return _WITHOUT_DYNAMO.or_else(lambda plain: plain)(function)


def has_torch_function_patch(make: Any) -> Patch:
    """Patch the check for overrides of torch functions, as used by fast paths of torch.nn."""
    return Patch(torch.overrides, "has_torch_function", make)
