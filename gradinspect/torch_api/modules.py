"""The members of an nn.Module, and the global module hooks."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from types import FrameType, FunctionType, MethodType
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as torch_module

from gradinspect.torch_api.patching.classes import is_one_of, module_of
from gradinspect.torch_api.patching.patches import Patch
from gradinspect.torch_api.probes import private

_BACKENDS = "torch._dynamo.backends."
HOLDERS = ("_parameters", "_buffers", "_modules")  # for the user these are attributes of the module
_GLOBAL_HOOKS = tuple(
    private(f"torch.nn.modules.module.{name}", "a compiled module may warn about hooks that are only ours")
    for name in (
        "_global_backward_pre_hooks",
        "_global_backward_hooks",
        "_global_forward_pre_hooks",
        "_global_forward_hooks",
    )
)

_FORWARD_HOOKS = tuple(
    private(f"torch.nn.modules.module.{name}", "torch may not find compiled code in its caches on disk")
    for name in ("_global_forward_pre_hooks", "_global_forward_hooks", "_global_forward_hooks_always_called")
)


def own_parameters(module: nn.Module) -> Mapping[str, Any]:
    """Return a module's own parameters. Unlike `parameters()`, it never runs user code."""
    return _members(module, "_parameters")


def own_buffers(module: nn.Module) -> dict[str, Any]:
    """Return a module's own buffers."""
    return _members(module, "_buffers")


def own_children(module: nn.Module) -> Mapping[str, nn.Module | None]:
    """Return a module's direct submodules."""
    return _members(module, "_modules")


def _members(module: nn.Module, holder: str) -> dict[str, Any]:
    """Return members without calling the methods of a program's own kind of dict, which may count reads."""
    members: dict[str, Any] = vars(module).get(holder, {})
    is_plain = is_one_of(members, (dict, OrderedDict)) or not isinstance(members, dict)
    return members if is_plain else dict(dict.items(members))


def call_keywords(frame: FrameType | None) -> Mapping[str, object]:
    """Return the keyword arguments of the module call whose pre-hooks run; global hooks are not given them.

    Source: torch/nn/modules/module.py `_call_impl`, torch 2.13.
    """
    while frame is not None and frame.f_code.co_filename == torch_module.__file__:
        keywords = frame.f_locals.get("kwargs")
        if type(keywords) is dict:
            return keywords
        frame = frame.f_back
    return {}


def global_hook_ids() -> Iterable[int]:
    """List the ids of the hooks that run on every module."""
    for name in _GLOBAL_HOOKS:
        if name.is_there:
            yield from name.value


def take_global_hooks(ids: Callable[[], Collection[int]]) -> Callable[[], None]:
    """Take some of the hooks that run on every module away.

    Args:
        ids: Returns the ids of those that are registered by us at the moment.

    Returns:
        What puts them back, each in its place, unless they were removed meanwhile.
    """
    tables = [name.value for name in _FORWARD_HOOKS if name.is_there]
    taken = [(table, tuple(table.items())) for table in tables]
    for table in tables:
        for number in ids():
            table.pop(number, None)

    def put_back() -> None:
        for table, items in taken:
            now, ours = dict(table), ids()
            table.clear()
            table.update({number: hook for number, hook in items if number in now or number in ours})
            table.update(now)

    return put_back


def global_hook_patch(make: Any) -> Patch:
    """Patch the check for global hooks, as used by compiled modules.

    Source: torch/_dynamo/eval_frame.py `OptimizedModule.__call__`, the only reader of this function, torch 2.13.
    """
    return Patch(torch_module, "_has_any_global_hook", make)


def autograd_function_patch(make: Any) -> Patch:
    """Patch `autograd.Function.apply`, a classmethod, written in C since torch 2.14."""
    return Patch(torch.autograd.Function, "apply", make)


def is_compiled_in_name_only(module: nn.Module) -> bool:
    """Return whether a module is the wrapper of torch.compile around one that runs uncompiled, and adds nothing.

    Source: torch/_dynamo/eval_frame.py `DisableContext`, torch 2.13.
    """
    if compiled_module(module) is None:
        return False
    return getattr(vars(module).get("dynamo_ctx"), "callback", module) is None


def is_of_compiler(module: nn.Module) -> bool:
    """Return whether a module is torch.compile's own: a graph that it made, or the wrapper of one that runs uncompiled.

    Each graph has a class of its own. Those that are made while torch.compile compiles have another base than those
    that the program traces, whatever they are called: "GraphModule", or "<lambda>" without autograd. Around the graphs
    that it makes for DistributedDataParallel, one for each bucket of gradients, there is another wrapper.
    Source: torch/fx/_lazy_graph_module.py, torch/fx/graph_module.py, torch/_dynamo/backends/distributed.py, torch 2.13.
    """
    kind = type(module)
    is_graph = kind.__mro__[1].__name__ == "_LazyGraphModule"
    return is_graph or module_of(kind).startswith(_BACKENDS) or is_compiled_in_name_only(module)


def compiled_module(module: nn.Module) -> nn.Module | None:
    """Return the program's module inside the wrapper that `torch.compile(module)` returns; None of any other."""
    if type(module).__name__ != "OptimizedModule":
        return None
    inner = own_children(module).get("_orig_mod")
    return inner if isinstance(inner, nn.Module) else None


def is_to_be_compiled(module: nn.Module) -> bool:
    """Return whether the program has called `module.compile()`, which gives its method back where nothing is compiled.

    Source: torch/nn/modules/module.py, torch/_dynamo/eval_frame.py `_NullDecorator`, torch 2.13.
    """
    call = vars(module).get("_compiled_call_impl")
    return call is not None and not isinstance(call, MethodType)


def runs_code_of_torch(module: nn.Module) -> bool:
    """Return whether its `forward` is one of torch.nn, which TorchDynamo does not look at unless code around it does.

    Source: torch/_dynamo/trace_rules.py, torch 2.13.
    """
    holders = (vars(module), *map(vars, type(module).__mro__))
    found = next((holder["forward"] for holder in holders if "forward" in holder), None)
    return isinstance(found, FunctionType) and str(found.__module__).startswith("torch.nn.")


def unsaved_buffers(module: nn.Module) -> frozenset[str]:
    """Return the names of a module's own buffers that are no part of its state dict."""
    return frozenset(vars(module).get("_non_persistent_buffers_set", ()))
