"""torch's own formulas for floating point operations: those that `FlopCounterMode` counts with."""

import importlib
from collections.abc import Mapping
from functools import cache
from typing import Any

import torch


def operator_flops(operator: str, *arguments: object, out: object) -> int | None:
    """Return what torch counts for one call of an operator; None if it has no formula for it.

    Args:
        operator: Its name, without the overload: "addmm".
        arguments: Its arguments, with shapes in the place of tensors.
        out: The shape of its output, or a list of them.

    Source: torch/utils/flop_counter.py, torch 2.13.
    """
    formula = _formulas().get(getattr(torch.ops.aten, operator, None))
    if formula is None:
        return None
    try:
        return int(formula(*arguments, out_val=out))
    except (TypeError, ValueError, IndexError, AssertionError):  # a record may come from another torch
        return None


@cache
def _formulas() -> Mapping[Any, Any]:
    """Import them when they are needed: where torch is built for CUDA, they import triton."""
    try:
        return dict(importlib.import_module("torch.utils.flop_counter").flop_registry)
    except (ImportError, AttributeError):
        return {}
