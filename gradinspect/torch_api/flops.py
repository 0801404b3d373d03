"""torch's own formulas for floating point operations: those that `FlopCounterMode` counts with."""

from collections.abc import Hashable, Mapping
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

import torch

from gradinspect.torch_api.patching.originals import ops

_SAME_WORK = {
    "_scaled_dot_product_flash_attention_for_cpu": "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_for_cpu_backward": "_scaled_dot_product_flash_attention_backward",
}


def _recurrent_flops(layer: torch.Tensor, weight: torch.Tensor, recurrent: torch.Tensor, *_: Any, **__: Any) -> int:
    """Count the two products of each step in time."""
    steps = layer.shape[0] * layer.shape[1]
    return int(2 * steps * (ops.numel(weight) + ops.numel(recurrent)))


def _recurrent_backward_flops(*arguments: Any, **keywords: Any) -> int:
    """Count twice as many: a gradient for each factor."""
    return 2 * _recurrent_flops(*arguments, **keywords)


_RECURRENT = {  # oneDNN's, on the CPU
    "mkldnn_rnn_layer": _recurrent_flops,
    "mkldnn_rnn_layer_backward": _recurrent_backward_flops,
}


@lru_cache(maxsize=1024)  # the layers of a model have few shapes, and a formula takes longer than recording its node
def operator_flops(operator: str, *arguments: Hashable, out: Hashable) -> int | None:
    """Return what torch counts for one call of an operator; None if it has no formula for it.

    Args:
        operator: Its name, without the overload: "addmm".
        arguments: Its arguments, with shapes in the place of tensors.
        out: The shape of its output, or a tuple of them.

    Source: torch/utils/flop_counter.py, torch 2.13.
    """
    formula = _formulas().get(getattr(torch.ops.aten, operator, None))
    if formula is None:
        return None
    of_shapes = getattr(formula, "__wrapped__", None)  # else torch looks for tensors everywhere, which takes long
    try:
        return int(formula(*arguments, out_val=out) if of_shapes is None else of_shapes(*arguments, out_shape=out))
    except (TypeError, ValueError, IndexError, AssertionError):  # a record may come from another version of torch
        return None


@cache
def _formulas() -> Mapping[Any, Any]:
    """Import them when they are needed: where torch is built for CUDA, they import triton."""
    try:
        formulas = dict(import_module("torch.utils.flop_counter").flop_registry)
    except Exception:  # the program may have put something in the place of what it calls as it is imported
        return {}
    for operator, formula in _RECURRENT.items():
        if hasattr(torch.ops.aten, operator):
            formulas.setdefault(getattr(torch.ops.aten, operator), formula)
    for operator, same in _SAME_WORK.items():  # attention on the CPU has no formula of its own
        ours, theirs = getattr(torch.ops.aten, operator, None), getattr(torch.ops.aten, same, None)
        if ours is not None and theirs in formulas:
            formulas.setdefault(ours, formulas[theirs])
    return formulas


def call_flops(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> int:
    """Return what torch counts for one call of an operator on tensors; 0 if it has no formula for it."""
    packet = getattr(func, "_overloadpacket", None)
    formula = _formulas().get(packet)
    if formula is None:
        return 0
    try:
        return int(formula(*args, **kwargs, out_val=result))
    except (TypeError, ValueError, IndexError, AssertionError):  # arguments of another version of torch
        return 0
