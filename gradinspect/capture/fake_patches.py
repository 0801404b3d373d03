"""What torch's own Python code needs, so that ordinary programs run on fake tensors.

Data loaders and samplers draw numbers: they run outside the fake mode, and what they deliver becomes fake at its first
use. `Module.to` swaps fake parameters with their copies, which the fake mode's own weak references forbid: here the
parameter gets the copy's data, as real ones do. A truncated normal draws until its values are in bounds, and
distributions check the values of their arguments: neither can matter here.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily
from torch.distributions import Distribution
from torch.utils.data import dataloader


@contextmanager
def patched_torch() -> Iterator[None]:
    """Apply all of them for a while."""
    with ExitStack() as stack:
        for kind, name in ((dataloader.DataLoader, "__iter__"), (dataloader._BaseDataLoaderIter, "__next__")):
            stack.enter_context(_replaced(kind, name, _outside_fake_mode(kind.__dict__[name])))
        stack.enter_context(_replaced(nn.Module, "_apply", _applying(nn.Module._apply)))
        stack.enter_context(_replaced(nn.init, "_no_grad_trunc_normal_", _drawing(nn.init._no_grad_trunc_normal_)))
        stack.enter_context(_replaced(Distribution, "_validate_args", False))
        yield


@contextmanager
def _replaced(owner: Any, name: str, replacement: object) -> Iterator[None]:
    original = vars(owner)[name]
    setattr(owner, name, replacement)
    try:
        yield
    finally:
        setattr(owner, name, original)


def _outside_fake_mode(original: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any) -> Any:
        with unset_fake_temporarily():
            return original(self)

    return call


def _drawing(original: Callable[..., Any]) -> Callable[..., Any]:
    def trunc_normal(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        return tensor if isinstance(tensor, FakeTensor) else original(tensor, *args, **kwargs)

    return trunc_normal


def _applying(original: Callable[..., nn.Module]) -> Callable[..., nn.Module]:
    def _apply(self: nn.Module, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> nn.Module:
        if not any(isinstance(parameter, FakeTensor) for parameter in self._parameters.values()):
            return original(self, fn, recurse)
        for module in self.children() if recurse else ():
            module._apply(fn)
        parameters = [parameter for parameter in self._parameters.values() if parameter is not None]
        for tensor in [*parameters, *(parameter.grad for parameter in parameters)]:
            if tensor is not None:
                _convert(tensor, fn)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    return _apply


def _convert(tensor: torch.Tensor, fn: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Give a tensor the data of its converted copy; it stays the same object."""
    with torch.no_grad():
        converted = fn(tensor)
    if converted is tensor:
        return
    tensor.data = converted.detach()
    if isinstance(tensor, FakeTensor) and isinstance(converted, FakeTensor):
        tensor.fake_device = converted.fake_device
