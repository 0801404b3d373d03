"""Keep torch and Python from behaving differently while we observe.

A context manager for the time of observing patches functions that only library code looks up, and restores them. The
program's own names are never touched.
"""

import warnings
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import torch
from torch import nn

from gradinspect.recording.transparency.transparent_frames import stack_without_us, warnings_without_us
from gradinspect.torch_api.anomaly import anomaly_stack_patches
from gradinspect.torch_api.modes import has_torch_function_patch, num_function_modes
from gradinspect.torch_api.modules import global_hook_ids, global_hook_patch
from gradinspect.torch_api.patching.patches import Patch, patched
from gradinspect.torch_api.tensors import keeps_torch_function_off


def transparent(hook_ids: Callable[[], set[int]]) -> AbstractContextManager[None]:
    """Hide our function mode and global module hooks from code that would react to them.

    Args:
        hook_ids: Returns the current ids of our module hooks.
    """
    return patched(
        has_torch_function_patch(_fast_paths_as_before),
        global_hook_patch(partial(_compiled_modules_as_before, hook_ids)),
        *stack_patches(),
    )


def stack_patches() -> tuple[Patch, ...]:
    """Leave our frames out where a stack is counted or printed. The engine has one also when nothing records."""
    return Patch(warnings, "_showwarnmsg", warnings_without_us), *anomaly_stack_patches(stack_without_us)


def _fast_paths_as_before(original: Callable[..., Any]) -> Callable[..., Any]:
    """Keep nn.MultiheadAttention and nn.TransformerEncoder on their inference fast path.

    They leave it if `torch.overrides.has_torch_function` reports an override of torch functions, and a mode counts as
    one; the slow path differs in the last bits. Only these two look the name up in torch.overrides at call time.
    Source: torch/nn/modules/activation.py, transformer.py, torch 2.13.
    """

    def has_torch_function(relevant_args: Iterable[Any]) -> bool:
        if torch.compiler.is_compiling() or num_function_modes() != 1:
            return bool(original(relevant_args))
        return any(_overrides_torch_function(type(argument)) for argument in relevant_args)

    return has_torch_function


def _compiled_modules_as_before(hook_ids: Callable[[], set[int]], _original: Callable[[], bool]) -> Callable[[], bool]:
    """Keep a compiled module from warning about global hooks if they are only ours."""

    def has_any_global_hook() -> bool:
        ours = hook_ids()
        return any(number not in ours for number in global_hook_ids())

    return has_any_global_hook


def _overrides_torch_function(kind: type) -> bool:
    """Return whether a type has its own `__torch_function__`."""
    if kind is torch.Tensor or kind is nn.Parameter:
        return False
    override = getattr(kind, "__torch_function__", None)
    return override is not None and not keeps_torch_function_off(override)
