"""Describe any live tensor as a `TensorInfo`."""

from collections.abc import Sequence
from typing import Any

import torch
from msgspec.structs import replace

from gradinspect.graph import Size, TensorInfo
from gradinspect.torch_api.distributed.sharding import local_tensor
from gradinspect.torch_api.patching.classes import identities
from gradinspect.torch_api.patching.originals import ops

PLAIN_TYPES = identities(torch.Tensor, torch.nn.Parameter)


class TensorInfoTable:
    """Makes each distinct `TensorInfo` once, since most tensors of a graph resemble another."""

    def __init__(self, plain_types: frozenset[int] = PLAIN_TYPES) -> None:
        """Start empty.

        Args:
            plain_types: Identities of types that do not count as subclasses.
        """
        self.plain_types = plain_types
        self.has_local_shapes = False
        self._plain: dict[tuple[Any, ...], TensorInfo] = {}
        self._outputs: dict[tuple[Any, ...], tuple[TensorInfo]] = {}
        self._names: dict[object, str] = {}

    def of_outputs(self, metadata: Sequence[Any]) -> tuple[TensorInfo, ...]:
        """Describe a node's `_input_metadata`: the forward outputs that its gradients belong to.

        Raises:
            AttributeError, RuntimeError, TypeError: They cannot be read.
        """
        if len(metadata) != 1:
            return tuple([info for one in metadata for info in self.of_outputs([one])])
        (one,) = metadata  # of nearly all nodes
        try:
            key = (tuple(one.shape), one.dtype, one.device)
            outputs = self._outputs.get(key)
            if outputs is None:
                outputs = self._outputs[key] = (self._plain.setdefault(key, self._make(*key)),)
        except (RuntimeError, TypeError):  # symbolic sizes have no hash, nested tensors no shape
            shape = () if one.is_nested_tensor else one.shape
            layout = "nested" if one.is_nested_tensor else "strided"
            return (self._make(shape, one.dtype, one.device, layout),)
        return outputs

    def of_plain_tensor(self, tensor: torch.Tensor) -> TensorInfo:
        """Describe a plain dense tensor.

        Raises:
            RuntimeError, TypeError: It is not plain: nested, or with symbolic sizes.
        """
        key = (tensor.shape, tensor.dtype, tensor.device)
        info = self._plain.get(key)
        if info is None:
            info = self._plain[key] = self._make(*key)
        return info

    def of_tensor(self, tensor: torch.Tensor) -> TensorInfo:
        """Describe a tensor. Never raises: what cannot be read is left out."""
        try:
            if id(type(tensor)) in self.plain_types and tensor.layout is torch.strided:
                return self.of_plain_tensor(tensor)
        except (RuntimeError, TypeError):
            pass
        try:
            return self._of_strange_tensor(tensor)
        except Exception:  # its class has properties of its own, which fail
            return self._make(("?",), "unknown", "unknown", subclass=self._class_name(tensor))

    def _of_strange_tensor(self, tensor: torch.Tensor) -> TensorInfo:
        shape = sizes_of(tensor)
        layout = "nested" if tensor.is_nested else self._name(tensor.layout)
        subclass = self._class_name(tensor)
        info = self._make(shape, tensor.dtype, tensor.device, layout, subclass)
        local = local_tensor(tensor) if subclass is not None else None
        if local is None:
            return info
        self.has_local_shapes = True
        return replace(info, local_shape=tuple(plain_size(size) for size in local.shape))

    def _class_name(self, tensor: torch.Tensor) -> str | None:
        kind = type(tensor)
        return None if id(kind) in self.plain_types else f"{kind.__module__}.{kind.__qualname__}"

    def _make(
        self, shape: Any, dtype: Any, device: Any, layout: str = "strided", subclass: str | None = None
    ) -> TensorInfo:
        return TensorInfo(
            shape=tuple(plain_size(size) for size in shape),
            dtype=self._name(dtype),
            device=self._name(device),
            layout=layout,
            subclass=subclass,
        )

    def _name(self, value: object) -> str:
        name = self._names.get(value)
        if name is None:
            name = self._names[value] = str(value).removeprefix("torch.")
        return name


def plain_size(size: Any) -> Size:
    """Convert a size to an int, or to its symbol without evaluating it."""
    return size if type(size) is int else str(size)


def sizes_of(tensor: torch.Tensor) -> tuple[Size, ...]:
    """Read a tensor's shape; a size that is not one number is its symbol."""
    try:
        return tuple(plain_size(size) for size in tensor.shape)
    except RuntimeError:  # a strided nested tensor
        return _nested_shape(tensor)


def _nested_shape(tensor: torch.Tensor) -> tuple[Size, ...]:
    """Read a strided nested tensor's shape; a ragged dimension becomes `*`."""
    sizes: list[Size] = []
    for dim in range(ops.dim(tensor)):
        try:
            sizes.append(plain_size(ops.size(tensor, dim)))
        except RuntimeError:
            sizes.append("*")
    return tuple(sizes)


def count_bytes(tensor: torch.Tensor) -> int:
    """Count the bytes of a tensor's elements on this rank; 0 if that would need a computation."""
    local = local_tensor(tensor)
    tensor = tensor if local is None else local
    try:
        num_bytes = ops.numel(tensor) * ops.element_size(tensor)
    except Exception:  # also what a subclass raises
        return 0
    return num_bytes if type(num_bytes) is int else 0
