"""Patches of torch's Python code that let ordinary programs run on fake tensors.

Data loaders and samplers draw numbers, so they run outside the fake mode, and their results become fake at first use.
`Module.to` swaps fake parameters with their copies, which the fake mode's weak references forbid; here the parameter
gets the copy's data, as real ones do. A truncated normal redraws until its values are in bounds, and distributions
validate their arguments; without values, neither is needed. A scalar is formatted as its number (`f"{loss:.4f}"`),
which torch does for its own tensor class only. A deep copy of a fake tensor, as `nn.TransformerEncoder` makes of its
layer, gets memory of its own: torch would copy the storage beside the one that views of the copy show. Memory that a
program shares with other processes (`model.share_memory()`) stays what it is, as its bytes do. What is saved to a file
is kept instead: NOTE [Files of fake tensors] in `saved_files`.
"""

import copy
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import torch
from torch import nn

from gradinspect.fake.draws import Draws
from gradinspect.fake.saved_files import SavedFiles
from gradinspect.torch_api.fakes import (
    FakeTensor,
    apply_patch,
    deepcopy_patch,
    distribution_patch,
    format_patch,
    loader_patches,
    logging_patches,
    reading_patches,
    set_fake_device,
    sharing_patch,
    truncated_normal_patch,
    unset_fake_temporarily,
)
from gradinspect.torch_api.modules import own_buffers, own_parameters
from gradinspect.torch_api.patching.patches import patched


def patched_torch(draws: Draws | None) -> AbstractContextManager[None]:
    """Apply all patches temporarily.

    Args:
        draws: What draws as a real run does; None: nothing does.
    """
    return patched(
        *loader_patches(_outside_fake_mode),
        apply_patch(_applying),
        truncated_normal_patch(partial(_drawing, draws)),
        distribution_patch(),
        format_patch(_formatting),
        deepcopy_patch(_copying),
        sharing_patch(_sharing),
        *logging_patches(),
        *SavedFiles().patches(),
    )


def patched_reads(reading: Callable[[str, Callable[..., Any]], Callable[..., Any]]) -> AbstractContextManager[None]:
    """Patch what reads all elements of a tensor without an operator.

    Args:
        reading: Makes the replacement of a method, given its name and the original.
    """
    return patched(*reading_patches(reading))


def _outside_fake_mode(original: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any) -> Any:
        with unset_fake_temporarily():
            return original(self)

    return call


def _drawing(draws: Draws | None, original: Callable[..., Any]) -> Callable[..., Any]:
    def trunc_normal(tensor: torch.Tensor, *args: Any, generator: Any = None, **kwargs: Any) -> Any:
        if not isinstance(tensor, FakeTensor):
            return original(tensor, *args, generator=generator, **kwargs)
        if draws is not None and tensor.device.type == "cpu":
            shape, dtype = tuple(tensor.shape), tensor.dtype

            def draw() -> None:
                original(torch.empty(shape, dtype=dtype, device="cpu"), *args, generator=generator, **kwargs)

            draws.redraw(draw, tensor.numel(), generator)
        return tensor

    return trunc_normal


def _formatting(original: Callable[..., str]) -> Callable[..., str]:
    def format_tensor(self: torch.Tensor, format_spec: str) -> str:
        is_scalar = isinstance(self, FakeTensor) and not self.dim()
        return format(self.item(), format_spec) if is_scalar else original(self, format_spec)

    return format_tensor


def _sharing(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def share_memory_(self: torch.Tensor) -> torch.Tensor:
        if isinstance(self, FakeTensor) and self.device.type != "meta":
            return self
        with unset_fake_temporarily():
            return original(self)

    return share_memory_


def _copying(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def copy_deeply(self: torch.Tensor, memo: dict[int, Any]) -> torch.Tensor:
        if not isinstance(self, FakeTensor) or id(self) in memo or not self.is_leaf or not _is_whole(self):
            return original(self, memo)
        copied = torch.empty_strided(self.shape, self.stride(), dtype=self.dtype, device=self.device)
        if isinstance(self, nn.Parameter):  # whose copy has no gradient and no attributes
            memo[id(self)] = parameter = nn.Parameter(copied, self.requires_grad)
            return parameter
        copied.requires_grad_(self.requires_grad)
        memo[id(self)] = copied
        copied.grad = None if self.grad is None else copy.deepcopy(self.grad, memo)
        for name, value in vars(self).items():
            if name not in vars(copied):  # what the program has added
                setattr(copied, name, copy.deepcopy(value, memo))
        return copied

    return copy_deeply


def _is_whole(tensor: torch.Tensor) -> bool:
    """Return whether a tensor shows all of its memory, as a parameter does."""
    return tensor.layout is torch.strided and tensor.untyped_storage().nbytes() == tensor.numel() * tensor.itemsize


def _applying(original: Callable[..., nn.Module]) -> Callable[..., nn.Module]:
    def _apply(self: nn.Module, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> nn.Module:
        if not any(isinstance(parameter, FakeTensor) for parameter in own_parameters(self).values()):
            return original(self, fn, recurse)
        for module in self.children() if recurse else ():
            module._apply(fn)
        parameters = [parameter for parameter in own_parameters(self).values() if parameter is not None]
        for tensor in [*parameters, *(parameter.grad for parameter in parameters)]:
            if tensor is not None:
                _convert(tensor, fn)
        buffers = own_buffers(self)
        for name, buffer in buffers.items():
            if buffer is not None:
                buffers[name] = fn(buffer)
        return self

    return _apply


def _convert(tensor: torch.Tensor, fn: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Replace a tensor's data by that of its converted copy, keeping the object."""
    with torch.no_grad():
        converted = fn(tensor)
    if converted is tensor:
        return
    tensor.data = converted.detach()
    set_fake_device(tensor, converted)
