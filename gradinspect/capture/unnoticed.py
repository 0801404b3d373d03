"""What torch and Python would do differently because somebody watches, and must not.

A context manager for the time of watching: it patches three functions that only library code looks up, and restores
them. The program's own names are never touched.
"""

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as torch_module

_OURS = str(Path(__file__).parent)


@contextmanager
def unnoticed(hook_ids: Callable[[], set[int]]) -> Iterator[None]:
    """Hide one function mode and some global module hooks from those who would act on them.

    Args:
        hook_ids: The ids of the module hooks that are ours, at any time.
    """
    with ExitStack() as stack:
        stack.enter_context(_fast_paths_as_before())
        stack.enter_context(_compiled_modules_as_before(hook_ids))
        stack.enter_context(_warnings_where_they_belong())
        yield


@contextmanager
def _replaced(holder: Any, name: str, replacement: Callable[..., Any]) -> Iterator[None]:
    """Replace a function, and put the original back unless somebody else replaced ours meanwhile."""
    original = getattr(holder, name)
    setattr(holder, name, replacement)
    try:
        yield
    finally:
        if getattr(holder, name) is replacement:
            setattr(holder, name, original)


@contextmanager
def _fast_paths_as_before() -> Iterator[None]:
    """Keep nn.MultiheadAttention and nn.TransformerEncoder on their inference fast path.

    They leave it when `torch.overrides.has_torch_function` says that somebody overrides torch functions, and a mode
    counts; the slow path gives other last bits. Only these look the name up in torch.overrides at call time.
    Source: torch/nn/modules/activation.py, transformer.py, torch 2.13.
    """
    original = torch.overrides.has_torch_function

    def has_torch_function(relevant_args: Iterable[Any]) -> bool:
        if torch.compiler.is_compiling() or torch._C._len_torch_function_stack() != 1:
            return bool(original(relevant_args))
        return any(_overrides_torch_function(type(argument)) for argument in relevant_args)

    with _replaced(torch.overrides, "has_torch_function", has_torch_function):
        yield


@contextmanager
def _compiled_modules_as_before(hook_ids: Callable[[], set[int]]) -> Iterator[None]:
    """Keep a compiled module from warning about global hooks that are only ours.

    Source: torch/_dynamo/eval_frame.py `OptimizedModule.__call__`, the only reader of this function, torch 2.13.
    """

    def has_any_global_hook() -> bool:
        ours = hook_ids()
        hooks = (
            torch_module._global_backward_pre_hooks,
            torch_module._global_backward_hooks,
            torch_module._global_forward_pre_hooks,
            torch_module._global_forward_hooks,
        )
        return any(number not in ours for registered in hooks for number in registered)

    with _replaced(torch_module, "_has_any_global_hook", has_any_global_hook):
        yield


@contextmanager
def _warnings_where_they_belong() -> Iterator[None]:
    """Show a warning from inside torch at the line that called torch: the innermost Python frame there is ours."""
    show = warnings._showwarnmsg  # type: ignore[attr-defined]

    def show_at_caller(message: Any) -> None:
        if message.filename.startswith(_OURS):
            frame: FrameType | None = sys._getframe(1)
            while frame is not None and frame.f_code.co_filename.startswith(_OURS):
                frame = frame.f_back
            if frame is not None:
                message.filename, message.lineno = frame.f_code.co_filename, frame.f_lineno
        show(message)

    with _replaced(warnings, "_showwarnmsg", show_at_caller):
        yield


def _overrides_torch_function(kind: type) -> bool:
    """Tell whether objects of this type carry a `__torch_function__` of their own."""
    if kind is torch.Tensor or kind is nn.Parameter:
        return False
    override = getattr(kind, "__torch_function__", None)
    return override is not None and override is not torch._C._disabled_torch_function_impl
