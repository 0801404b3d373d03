"""Notice when the program enters and leaves code under torch.compile or torch.jit.trace, to be out of the way there.

NOTE [Compiled regions]
torch.compile traces a function mode that is active with the program, guards on it, and breaks the graph at some calls
that it would otherwise inline; then results may differ in the last bits. So our mode is taken off the stack while the
program is inside a compiled function, also between its compiled parts. torch.compile switches its frame evaluation on
and off by a global function of one of its modules, which is replaced. That module is imported by the first call of
torch.compile, which reports itself to another function that is looked up; so nothing is imported for a program that
does not compile.

While a frame is traced, our module hooks are taken away: with a hook, TorchDynamo follows `Module._call_impl` rather
than `forward`, so a graph has its inputs in another order, by which torch's caches on disk are looked up. It does not
guard on global hooks.
Source: torch/_dynamo/eval_frame.py, callback.py, variables/nn_module.py, torch/__init__.py, torch 2.13.

NOTE [Traced regions]
torch.jit.trace notes for each operator the innermost line of Python, and names what it returns as the variable of that
frame which holds it. With our mode both would be ours, in the code of the trace, in what is exported or saved from it,
and in its errors. So the mode is taken off for the time of the C++ functions that trace.
Source: torch/jit/_trace.py, torch/csrc/jit/python/python_tracer.cpp, torch 2.13.
"""

import sys
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from types import FrameType
from typing import Any

import torch

from gradinspect.torch_api.dynamo import never_compiled, passed_by, uncompiled
from gradinspect.torch_api.modules import take_global_hooks
from gradinspect.torch_api.patching.patches import Patch, patched
from gradinspect.torch_api.probes import look_up, private

_PACKAGE = import_module(__name__.partition(".")[0])
_MODULE = "torch._dynamo.eval_frame"
_CALLBACKS = "torch._dynamo.callback"
_SWITCH = "_maybe_set_eval_frame"
_REPORTS = private("torch._C._log_api_usage_once", "code under torch.compile may be compiled another way")
_USES = frozenset(("torch.compile", "torch._dynamo.optimize", "torch._dynamo.export"))
_TRACERS = [
    private(f"torch._C.{name}", "code under torch.jit.trace may have lines of ours")
    for name in (
        "_create_graph_by_tracing",
        "_create_function_from_trace",
        "_create_function_from_trace_with_dict",
        "ScriptModule._create_method_from_trace",
        "ScriptModule._create_method_from_trace_with_dict",
    )
]


@contextmanager
def noticed_regions(
    switched: Callable[[bool, FrameType | None], None], hook_ids: Callable[[], Collection[int]]
) -> Iterator[None]:
    """Report when the program enters compiled code, and when it leaves it.

    Args:
        switched: Called on its thread, with whether it enters, and the frame that calls the compiled function.
        hook_ids: Returns the current ids of our module hooks.
    """
    with ExitStack() as patches:
        reporting = patches.enter_context(ExitStack())

        def begin() -> None:
            reporting.close()
            import_module(_MODULE)  # as the caller is about to
            never_compiled(_PACKAGE)
            patches.enter_context(_traced_without(hook_ids))
            patches.enter_context(
                patched(Patch(sys.modules[_MODULE], _SWITCH, lambda setting: _noticing(setting, switched)))
            )

        if _MODULE in sys.modules:
            begin()
        else:
            reporting.enter_context(
                patched(Patch(torch._C, _REPORTS.path.rpartition(".")[2], lambda report: _Reported(report, begin)))
            )
        yield


@contextmanager
def _traced_without(hook_ids: Callable[[], Collection[int]]) -> Iterator[None]:
    """Take our module hooks away while TorchDynamo traces."""
    callbacks = getattr(sys.modules.get(_CALLBACKS), "callback_handler", None)
    back: list[Callable[[], None]] = []

    def begins(_: object) -> None:
        back.append(take_global_hooks(hook_ids))

    def ends(_: object) -> None:
        if back:
            back.pop()()

    if callbacks is None:
        yield
        return
    callbacks.register_start_callback(begins)
    callbacks.register_end_callback(ends)
    try:
        yield
    finally:
        for callback, registered in ((begins, callbacks.start_callbacks), (ends, callbacks.end_callbacks)):
            if callback in registered:  # torch._dynamo.reset() forgets all
                registered.remove(callback)
        ends(None)


class _Reported:
    """Stands in for the function to which torch.compile reports its use, until the first one.

    It is equal to that function: torch._dynamo lists what it can trace as soon as a program imports it, and modules
    made in compiled code report themselves too.
    """

    def __init__(self, original: Any, begin: Callable[[], None]) -> None:
        self._original = original
        self._begin: Callable[[], None] | None = begin

    def __call__(self, name: str) -> None:
        if self._begin is not None and name in _USES:
            begin, self._begin = self._begin, None
            begin()
        self._original(name)

    def __eq__(self, other: object) -> bool:
        return other is self or bool(self._original == other)

    def __hash__(self) -> int:
        return hash(self._original)


def _noticing(
    setting: Callable[[Any], Any], switched: Callable[[bool, FrameType | None], None]
) -> Callable[[Any], Any]:
    regions = threading.local()

    @uncompiled
    def notice(callback: Any, caller: FrameType) -> None:
        """Follow the outermost compiled function; what it calls may switch off and on too."""
        outermost = getattr(regions, "outermost", None)
        if outermost is None and callback is not None and caller.f_code.co_name != "__enter__":
            regions.outermost = id(caller)
            switched(True, caller.f_back)
        elif outermost == id(caller):
            regions.outermost = None
            switched(False, caller.f_back)

    @passed_by
    def _maybe_set_eval_frame(callback: Any) -> Any:
        notice(callback, sys._getframe(1))  # frames are not compiled until the next line
        return setting(callback)

    return _maybe_set_eval_frame


def tracing_apart(stand_aside: Callable[[bool, FrameType | None], None]) -> list[Patch]:
    """Be out of the way while code is traced. NOTE [Traced regions].

    Args:
        stand_aside: Called on its thread as tracing begins and ends, with which of both, and the frame that traces.
    """

    def apart(tracer: Callable[..., Any]) -> Callable[..., Any]:
        def trace(*arguments: Any, **keywords: Any) -> Any:
            caller = sys._getframe(1)
            stand_aside(True, caller)
            try:
                return tracer(*arguments, **keywords)
            except BaseException as error:  # NOTE [No frame of ours in a traceback] in `recorder`
                error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
                raise
            finally:
                stand_aside(False, caller)

        return trace

    names = [one.path.rpartition(".") for one in _TRACERS if one.is_there]
    return [Patch(look_up(holder), name, apart) for holder, _, name in names]
