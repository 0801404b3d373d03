"""Fake tensors: torch's own mode for running without memory, and the patches that ordinary programs need under it."""

from typing import Any

from torch import nn
from torch.distributions import Distribution
from torch.utils.data import dataloader

from gradinspect.torch_api.modes import require_dispatch_modes
from gradinspect.torch_api.patches import Patch
from gradinspect.torch_api.probes import private
from gradinspect.torch_api.tensors import require_storage_keys

_FAKE = "torch._subclasses.fake_tensor"
_TENSOR = private(f"{_FAKE}.FakeTensor", only_for="--fake")
_MODE = private(f"{_FAKE}.FakeTensorMode", only_for="--fake")
_UNSET = private(f"{_FAKE}.unset_fake_temporarily", only_for="--fake")
_ERRORS = tuple(
    private(f"{_FAKE}.{name}", "what a program without values fails on is not explained")
    for name in ("DataDependentOutputException", "DynamicOutputShapeException", "UnsupportedFakeTensorException")
)


class _NoFakeTensor:
    """Stands in for FakeTensor where torch has none: no tensor is one."""


FakeTensor: Any = _TENSOR.or_else(_NoFakeTensor)
unset_fake_temporarily: Any = _UNSET.or_refuse()
NEEDS_VALUES: tuple[Any, ...] = tuple(name.value for name in _ERRORS if name.is_there)


def fake_tensor_mode() -> Any:
    """Make everything fake that is made while this is active.

    Raises:
        GradInspectError: This torch has no fake tensors, or not those that we know.
    """
    for name in (_TENSOR, _UNSET):
        name.required()
    require_dispatch_modes("--fake")
    require_storage_keys("--fake")
    return _MODE.required()(allow_non_fake_inputs=True)


def loader_patches(make: Any) -> tuple[Patch, ...]:
    """Patch where data loaders begin and go on."""
    return Patch(dataloader.DataLoader, "__iter__", make), Patch(
        getattr(dataloader, "_BaseDataLoaderIter", dataloader.DataLoader), "__next__", make
    )


def apply_patch(make: Any) -> Patch:
    """Patch what `Module.to` and its like call for each module."""
    return Patch(nn.Module, "_apply", make)


def truncated_normal_patch(make: Any) -> Patch:
    """Patch the function behind `nn.init.trunc_normal_`."""
    return Patch(nn.init, "_no_grad_trunc_normal_", make)


def distribution_patch() -> Patch:
    """Keep distributions from checking the values of their arguments."""
    return Patch(Distribution, "_validate_args", lambda _original: False)


def set_fake_device(tensor: Any, like: Any) -> None:
    """Move a fake tensor to the device of another one."""
    if isinstance(tensor, FakeTensor) and isinstance(like, FakeTensor):
        tensor.fake_device = like.fake_device
