"""Corrections where torch's shape functions differ from its CPU kernels.

NOTE [Kernels that differ from their shape functions]
Batch, layer and group norm of a half-precision input with float32 weights keep their statistics in float32 on the CPU;
the shape functions say half. oneDNN's recurrent layers keep a workspace whose size only oneDNN knows; the shape
function says none, so the layer is run once on zeros to find out. A few losses are reduced within the memory of the
unreduced ones, which the scalar then keeps. The shape function of a grouped product, as of a mixture of experts, takes
bfloat16 only, and in a build without CUDA no padding of rows; the kernel takes other dtypes, and pads rows to 16 bytes.
All were compared op by op on torch 2.13.

NOTE [Elements of sparse tensors]
A fake sparse tensor knows how many elements it has, but what is made of it has none: its transpose, a copy, a multiple.
It gets as many here. So does the sum of two that have as many, which are gradients of one tensor, and at the same
places. What is made of elements that may share a place is not coalesced either, so that `coalesce()` copies them, as
the optimizers for sparse gradients have it do. A mask says itself how many it keeps. `coalesce()` adds up elements of
the same place, so it may keep fewer; as in the adjacency of a graph, none are taken to be there twice, and the reader
is told. The engine copies a gradient whose parts something else holds: here modes do, and in a real run nothing.
"""

from collections.abc import Callable
from typing import Any

import torch

from gradinspect.torch_api.devices.allocations import running_node
from gradinspect.torch_api.fakes import (
    FakeTensor,
    answers_device,
    num_elements,
    unset_fake_temporarily,
    with_elements,
    with_parts_of,
)
from gradinspect.torch_api.modes import TorchDispatchMode
from gradinspect.torch_api.operators import operator_name

_HALF = (torch.float16, torch.bfloat16)
_ATEN = torch.ops.aten
_WEIGHT_PLACE = {
    _ATEN.native_layer_norm.default: 2,
    _ATEN.native_group_norm.default: 1,
    _ATEN.native_batch_norm.default: 1,
}
_REDUCTION_PLACE = {  # of losses whose scalar keeps the memory of all: that of the argument
    _ATEN.mse_loss.default: 2,
    _ATEN.smooth_l1_loss.default: 2,
    _ATEN.soft_margin_loss.default: 2,
    _ATEN.binary_cross_entropy.default: 3,
}
_MEAN = 1
_COMPRESSED = (  # made of its parts
    torch.ops.aten.sparse_compressed_tensor.comp_plain_value,
    torch.ops.aten.sparse_compressed_tensor.comp_plain_value_size,
)
NO_COMPRESSED = "A compressed sparse tensor that is made of its parts cannot be fake."
_MASK = torch.ops.aten.sparse_mask.default
_CLONE = _ATEN.clone.default
_COALESCE = "aten._coalesce"
_ACCUMULATES = "AccumulateGrad"  # the end of a node's name
_GROUPED = "aten._grouped_mm"
_ROW_BYTES = 16  # to whose multiple a grouped product pads its rows; at::native in GroupedMMUtils.h
_RECURRENT = _ATEN.mkldnn_rnn_layer.default
_WORKSPACE = 3  # index among the outputs
_ALWAYS_THERE = ("cpu", "meta")
MAX_TRIAL_BYTES = 2**28  # of the inputs of a layer that is run to measure its workspace

COALESCED = "Sparse tensors were taken to have no place twice: coalesce() keeps all of their elements."
UNKNOWN_WORKSPACE = "A recurrent layer is too large to measure its oneDNN workspace, which is not counted."


class FakeKernels(TorchDispatchMode):
    """Corrects the results of fake ops. Active above a fake mode."""

    def __init__(self, check_device: Callable[[torch.device], None]) -> None:
        """Start with an empty cache.

        Args:
            check_device: Rejects a device for which nothing can be faked here, before a node is made of its tensors.
        """
        super().__init__()
        self._check_device = check_device
        self.warnings: dict[str, None] = {}
        self._workspaces: dict[object, int] = {}

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run the fake op, then correct its result."""
        if answers_device(func, args):
            return args[0].fake_device
        if func in _COMPRESSED:
            raise NotImplementedError(NO_COMPRESSED)  # torch would log an error, and raise another one
        if operator_name(func) == _GROUPED and args[0].device.type == "cpu":
            return _grouped_product(*args, **(kwargs or {}))
        result = func(*args, **(kwargs or {}))
        if type(result) is FakeTensor and result.fake_device.type not in _ALWAYS_THERE:
            self._check_device(result.fake_device)
        return self._corrected(func, result, args)

    def _corrected(self, func: Any, result: Any, args: tuple[Any, ...]) -> Any:
        place = _WEIGHT_PLACE.get(func)
        if place is not None:
            return _with_wide_statistics(result, args[0], args[place])
        if func in _REDUCTION_PLACE:
            return _in_memory_of_all(result, args, _REDUCTION_PLACE[func])
        if type(result) is FakeTensor and result.layout is torch.sparse_coo:
            return self._with_elements(func, result, args)
        if func is _RECURRENT and isinstance(result[0], FakeTensor):
            return self._with_workspace(func, result, args)
        return result

    def _with_elements(self, func: Any, result: torch.Tensor, args: tuple[Any, ...]) -> torch.Tensor:
        """Let a sparse result have as many elements as what it is made of. NOTE [Elements of sparse tensors]."""
        sparse = [arg for arg in args if isinstance(arg, torch.Tensor) and arg.layout is torch.sparse_coo]
        numbers = {num_elements(arg) for arg in (sparse[-1:] if func is _MASK else sparse)}
        if func is _CLONE and _is_accumulating():
            return with_parts_of(args[0])
        if num_elements(result) or len(numbers) != 1:
            return result
        if operator_name(func) == _COALESCE:
            self.warnings[COALESCED] = None
        is_coalesced = operator_name(func) == _COALESCE or all(arg.is_coalesced() for arg in sparse)
        return with_elements(result, *numbers, is_coalesced=is_coalesced)

    def _with_workspace(self, func: Callable[..., Any], result: Any, args: tuple[Any, ...]) -> Any:
        key = tuple((tuple(arg.shape), arg.dtype) if isinstance(arg, torch.Tensor) else str(arg) for arg in args)
        if key not in self._workspaces:
            self._workspaces[key] = self._measure_workspace(func, args)
        outputs = list(result)
        outputs[_WORKSPACE] = result[_WORKSPACE].new_empty(self._workspaces[key])
        return type(result)(outputs)

    def _measure_workspace(self, func: Callable[..., Any], args: tuple[Any, ...]) -> int:
        tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
        if sum(tensor.nbytes for tensor in tensors) > MAX_TRIAL_BYTES:
            self.warnings[UNKNOWN_WORKSPACE] = None
            return 0
        looks = [(tuple(arg.shape), arg.dtype) if isinstance(arg, torch.Tensor) else arg for arg in args]
        with unset_fake_temporarily():
            real = [torch.zeros(arg[0], dtype=arg[1], device="cpu") if isinstance(arg, tuple) else arg for arg in looks]
            return int(func(*real)[_WORKSPACE].numel())


def _is_accumulating() -> bool:
    node = running_node()
    return node is not None and str(node.name()).endswith(_ACCUMULATES)


def _grouped_product(
    left: torch.Tensor,
    right: torch.Tensor,
    offs: torch.Tensor | None = None,
    _bias: object = None,  # which the kernel refuses
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """Make the result of a grouped product: one product per group, unless only one factor has its groups apart."""
    dtype = out_dtype or left.dtype
    groups = [len(left if offs is None else offs)] if left.dim() == right.dim() else []
    rows, columns = left.shape[-2], right.shape[-1]
    padded = -(-columns * dtype.itemsize // _ROW_BYTES) * _ROW_BYTES // dtype.itemsize
    strides = [rows * padded, padded, 1][-2 - len(groups) :]
    return torch.empty_strided([*groups, rows, columns], strides, dtype=dtype, device=left.device)


def _in_memory_of_all(result: torch.Tensor, args: tuple[Any, ...], place: int) -> torch.Tensor:
    """Put a reduced loss into the memory of the unreduced ones, on the CPU."""
    reduction = args[place] if len(args) > place else _MEAN
    if not reduction or result.device.type != "cpu":
        return result
    whole = torch.empty(torch.broadcast_shapes(args[0].shape, args[1].shape), dtype=result.dtype, device=result.device)
    return torch.as_strided(whole, (), ()) if whole.numel() else result


def _with_wide_statistics(result: Any, tensor: torch.Tensor, weight: torch.Tensor | None) -> Any:
    is_mixed = weight is not None and tensor.dtype in _HALF and weight.dtype is torch.float32
    if not is_mixed or tensor.device.type != "cpu":
        return result
    return type(result)((result[0], *(statistic.to(torch.float32) for statistic in result[1:])))
