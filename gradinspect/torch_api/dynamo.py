"""Keep torch.compile away from functions of ours.

Between the parts of a function that it has compiled, torch.compile looks at each Python frame that runs, and compiles
that too. A frame of ours would be one more to compile and one more graph break; and what it has to see, it would see
while it is traced, not when it runs. Traced code calls some of ours as well, where this has no effect: those say so
themselves, by asking `torch.compiler.is_compiling()`.
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
    """Run a function as it is; what it calls is the program's, and is compiled as ever."""
    return _skip(function, with_callees=False)


def uncompiled(function: _Function) -> _Function:
    """Run a function as it is, with all that it calls."""
    return _skip(function, with_callees=True)


def _skip(function: _Function, *, with_callees: bool) -> _Function:
    if _SET.is_there and _STRATEGY.is_there and _ACTION.is_there:
        skip, default = _ACTION.value.SKIP, _ACTION.value.DEFAULT
        _SET.value(function.__code__, _STRATEGY.value(skip, skip if with_callees else default))
    return function
