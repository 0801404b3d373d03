"""Keep torch.compile away from our functions.

Between the compiled parts of a function, torch.compile inspects each Python frame that runs, and compiles it too. Our
frame would be one more to compile and one more graph break, and it would observe the trace instead of the run. Traced
code also calls some of our functions, where this has no effect: those check `torch.compiler.is_compiling()` themselves.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from gradinspect.torch_api.probes import private

_UNSEEN = "backward calls inside a function under torch.compile are not seen"
_SET = private("torch._C._dynamo.eval_frame.set_code_exec_strategy", _UNSEEN)
_STRATEGY = private("torch._C._dynamo.eval_frame._FrameExecStrategy", _UNSEEN)
_ACTION = private("torch._C._dynamo.eval_frame._FrameAction", _UNSEEN)
_Function = TypeVar("_Function", bound=Callable[..., Any])


def passed_by(function: _Function) -> _Function:
    """Run a function uncompiled; what it calls belongs to the program, and is compiled as usual."""
    return _skip(function, with_callees=False)


def uncompiled(function: _Function) -> _Function:
    """Run a function uncompiled, with everything that it calls."""
    return _skip(function, with_callees=True)


def _skip(function: _Function, *, with_callees: bool) -> _Function:
    if _SET.is_there and _STRATEGY.is_there and _ACTION.is_there:
        skip, default = _ACTION.value.SKIP, _ACTION.value.DEFAULT
        _SET.value(function.__code__, _STRATEGY.value(skip, skip if with_callees else default))
    return function
