"""What a live tensor looks like, as a `TensorInfo`, whatever kind of tensor it is."""

from typing import Any

import torch

from gradinspect.graph import Size, TensorInfo

PLAIN_TYPES = (torch.Tensor, torch.nn.Parameter)


class TensorInfoTable:
    """Makes each `TensorInfo` once: most tensors of a graph look like another one."""

    def __init__(self, plain_types: tuple[type, ...] = PLAIN_TYPES) -> None:
        """Start empty.

        Args:
            plain_types: What does not count as a subclass.
        """
        self.plain_types = plain_types
        self._plain: dict[tuple[Any, ...], TensorInfo] = {}
        self._names: dict[object, str] = {}

    def of_metadata(self, metadata: Any) -> TensorInfo:
        """Describe one of a node's `_input_metadata`: the forward output that a gradient belongs to."""
        try:
            key = (tuple(metadata.shape), metadata.dtype, metadata.device)
            info = self._plain.get(key)
            if info is None:
                info = self._plain[key] = self._make(*key)
        except (RuntimeError, TypeError):  # a symbolic size has no hash, a nested tensor no shape
            shape = () if metadata.is_nested_tensor else metadata.shape
            layout = "nested" if metadata.is_nested_tensor else "strided"
            return self._make(shape, metadata.dtype, metadata.device, layout)
        return info

    def of_plain_tensor(self, tensor: torch.Tensor) -> TensorInfo:
        """Describe a dense tensor of no subclass.

        Raises:
            RuntimeError, TypeError: It is not as plain as that: nested, or of symbolic sizes.
        """
        key = (tuple(tensor.shape), tensor.dtype, tensor.device)
        info = self._plain.get(key)
        if info is None:
            info = self._plain[key] = self._make(*key)
        return info

    def of_tensor(self, tensor: torch.Tensor) -> TensorInfo:
        """Describe a tensor. Never raises: what cannot be read is left out."""
        try:
            if type(tensor) in self.plain_types and tensor.layout is torch.strided:
                return self.of_plain_tensor(tensor)
        except (RuntimeError, TypeError):
            pass
        return self._of_strange_tensor(tensor)

    def _of_strange_tensor(self, tensor: torch.Tensor) -> TensorInfo:
        try:
            shape: tuple[Any, ...] = tuple(tensor.shape)
        except RuntimeError:  # a nested tensor of the strided kind
            shape = _nested_shape(tensor)
        layout = "nested" if tensor.is_nested else self._name(tensor.layout)
        kind = type(tensor)
        subclass = None if kind in self.plain_types else f"{kind.__module__}.{kind.__qualname__}"
        return self._make(shape, tensor.dtype, tensor.device, layout, subclass)

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
    """Turn a size into an int, or into its symbol without asking for its value."""
    return size if type(size) is int else str(size)


def _nested_shape(tensor: torch.Tensor) -> tuple[Size, ...]:
    """Read a strided nested tensor's shape; a ragged dimension becomes `*`."""
    sizes: list[Size] = []
    for dim in range(tensor.dim()):
        try:
            sizes.append(plain_size(tensor.size(dim)))
        except RuntimeError:
            sizes.append("*")
    return tuple(sizes)


def count_bytes(tensor: torch.Tensor) -> int:
    """Count the bytes of the elements that a tensor shows; 0 where it cannot tell without computing."""
    try:
        num_bytes = tensor.numel() * tensor.element_size()
    except (RuntimeError, NotImplementedError):
        return 0
    return num_bytes if type(num_bytes) is int else 0
