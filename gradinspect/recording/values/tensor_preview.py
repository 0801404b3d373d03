"""Previews of live tensors for display. Computes under no_grad and adds no node."""

from collections.abc import Iterator
from typing import Any

import torch

from gradinspect.analyses.gradients.stepping import SavedPreview, TensorPreview
from gradinspect.graph import Node, SavedValue, Size
from gradinspect.recording.values.magnitudes import dense_of, magnitudes_of
from gradinspect.recording.values.saved import raw_tensor
from gradinspect.recording.values.tensors import sizes_of
from gradinspect.torch_api.patching.originals import ops, without_grad
from gradinspect.torch_api.tensors import is_released, plain_tensors_only

MAX_VALUES = 64


def show_tensor(tensor: torch.Tensor, max_values: int = MAX_VALUES) -> TensorPreview:
    """Compute a tensor's statistics, and its values if there are few. What cannot be read is left out."""
    shape: tuple[Size, ...] = ()
    dtype = str(tensor.dtype).removeprefix("torch.")
    try:
        with plain_tensors_only(), without_grad():
            shape = sizes_of(tensor)
            if is_released(tensor) or not all(isinstance(size, int) for size in shape):
                return TensorPreview(shape=shape, dtype=dtype)
            return _numbers(ops.detach(tensor), shape, dtype, max_values)
    except (RuntimeError, NotImplementedError, TypeError):
        return TensorPreview(shape=shape, dtype=dtype)


def _numbers(tensor: torch.Tensor, shape: tuple[Size, ...], dtype: str, max_values: int) -> TensorPreview:
    dense = dense_of(tensor)
    if not ops.numel(dense):
        return TensorPreview(shape=shape, dtype=dtype, values=())
    values = None
    if ops.numel(dense) <= max_values:
        values = tuple(str(x) if isinstance(x, complex) else x for x in ops.tolist(ops.reshape(dense, (-1,))))
    if dense.dtype is torch.bool or not (ops.is_floating_point(dense) or ops.is_complex(dense)):
        return TensorPreview(
            shape=shape, dtype=dtype, values=values, num_zeros=ops.numel(dense) - ops.item(ops.count_nonzero(dense))
        )
    found = magnitudes_of(dense)
    return TensorPreview(
        shape=shape,
        dtype=dtype,
        values=values,
        norm=found.norm,
        low=found.low,
        high=found.high,
        num_zeros=ops.numel(dense) - found.num_nonzero,
        num_nonfinite=found.num_nonfinite,
    )


def show_saved(grad_fn: Any, node: Node) -> Iterator[SavedPreview]:
    """Preview the saved attributes of a node that has yet to run; runs no hook."""
    for value in node.saved:
        if value.kind != "tensor":
            yield SavedPreview(name=_name(node, value), text=value.status or str(value.value))
            continue
        tensor = raw_tensor(grad_fn, value)
        shown: TensorPreview | None = None if tensor is None else show_tensor(tensor)
        text = "" if shown is not None else value.status or ""
        yield SavedPreview(name=_name(node, value), tensor=shown, text=text)


def _name(node: Node, value: SavedValue) -> str:
    """Name a saved value as torch does; in a compiled node, after the operator that made it, or as a parameter."""
    if node.kind == "compiled" and value.operator is None and value.origin_name is not None:
        return value.origin_name
    name = value.operator or value.name.removeprefix("_saved_")
    return name if value.index is None else f"{name}[{value.index}]"
