"""Corrections where torch's shape functions differ from its CPU kernels.

NOTE [Kernels that differ from their shape functions]
Batch, layer and group norm of a half-precision input with float32 weights keep their statistics in float32 on the CPU;
the shape functions say half. oneDNN's recurrent layers keep a workspace whose size only oneDNN knows; the shape
function says none, so the layer is run once on zeros to find out. A few losses are reduced within the memory of the
unreduced ones, which the scalar then keeps. All were compared op by op on torch 2.13.
"""

from collections.abc import Callable
from typing import Any

import torch

from gradinspect.torch_api.fakes import FakeTensor, answers_device, unset_fake_temporarily
from gradinspect.torch_api.modes import TorchDispatchMode

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
_RECURRENT = _ATEN.mkldnn_rnn_layer.default
_WORKSPACE = 3  # index among the outputs
_ALWAYS_THERE = ("cpu", "meta")
MAX_TRIAL_BYTES = 2**28  # of the inputs of a layer that is run to measure its workspace

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
        result = func(*args, **(kwargs or {}))
        if type(result) is FakeTensor and result.fake_device.type not in _ALWAYS_THERE:
            self._check_device(result.fake_device)
        place = _WEIGHT_PLACE.get(func)
        if place is not None:
            return _with_wide_statistics(result, args[0], args[place])
        if func in _REDUCTION_PLACE:
            return _in_memory_of_all(result, args, _REDUCTION_PLACE[func])
        if func is _RECURRENT and isinstance(result[0], FakeTensor):
            return self._with_workspace(func, result, args)
        return result

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
