"""Fake tensors: torch's mode for running without memory, and the patches that ordinary programs need with it."""

import sys
from collections.abc import Callable
from functools import partial
from logging import CRITICAL, Logger
from typing import Any

import torch
from torch import nn
from torch.distributions import Distribution
from torch.utils.data import dataloader

from gradinspect.torch_api.modes import require_dispatch_modes
from gradinspect.torch_api.patching.originals import ops
from gradinspect.torch_api.patching.patches import Patch
from gradinspect.torch_api.probes import private
from gradinspect.torch_api.tensors import require_storage_keys

_NNZ = private("torch.Tensor._nnz", "the elements of sparse tensors are not counted on fake tensors")
_MAKE_SPARSE = private(
    "torch.ops.aten._sparse_coo_tensor_with_dims_and_tensors",
    "the elements of sparse tensors are not counted on fake tensors",
)
_FAKE = "torch._subclasses.fake_tensor"
_TENSOR = private(f"{_FAKE}.FakeTensor", only_for="--fake")
_MODE = private(f"{_FAKE}.FakeTensorMode", only_for="--fake")
_UNSET = private(f"{_FAKE}.unset_fake_temporarily", only_for="--fake")
_ERRORS = tuple(
    private(f"{_FAKE}.{name}", "errors caused by missing values are not explained")
    for name in ("DataDependentOutputException", "DynamicOutputShapeException", "UnsupportedFakeTensorException")
)
_LOG = private(f"{_FAKE}.log", "torch logs errors of the program on fake tensors, besides raising them")
_DEVICE = private("torch.ops.prim.device.default", "fake tensors take longer")
_KEY_OF = private(f"{_FAKE}.FakeTensorMode._prep_args_for_hash", "fake tensors take longer")
_READ = private("torch.ops.aten._local_scalar_dense.default", "fit does not answer what reads a loss")


class _NoFakeTensor:
    """Replaces FakeTensor where torch has none: no tensor is an instance."""


FakeTensor: Any = _TENSOR.or_else(_NoFakeTensor)
unset_fake_temporarily: Any = _UNSET.or_refuse()
_DEVICE_OF: Any = _DEVICE.or_else(_NoFakeTensor)
reads_scalar: Any = _READ.or_else(None)  # the operator behind `item()`
NEEDS_VALUES: tuple[Any, ...] = tuple(name.value for name in _ERRORS if name.is_there)
_SIZE = private(
    f"{_FAKE}.DynamicOutputShapeException", "sizes that depend on values are reported as values that are read"
)
NEEDS_SIZE: tuple[Any, ...] = (_SIZE.value,) if _SIZE.is_there else ()


def fake_tensor_mode() -> Any:
    """Return a mode that makes new tensors fake.

    Raises:
        GradInspectError: This torch has no fake tensors, or unknown ones.
    """
    for name in (_TENSOR, _UNSET):
        name.required()
    require_dispatch_modes("--fake")
    require_storage_keys("--fake")
    mode = _MODE.required()(allow_non_fake_inputs=True)
    if _KEY_OF.is_there:
        mode._prep_args_for_hash = _ArgumentKeys(mode).add
    return mode


_SAME_AS_ITSELF = frozenset((
    bool, int, float, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format,
))  # fmt: skip


class _ArgumentKeys:
    """Writes down what a mode of fake tensors looks at of arguments, to know an operator that it has run before.

    NOTE [Known operators]
    The mode keeps how results look by a key of the arguments, and spends half of its time on that key: each property
    of a tensor goes through several functions, and each number of a shape is an entry. Here a tensor is one tuple of
    the same properties. What is no plain fake tensor, list or number is left to the mode.
    Source: _prep_args_for_hash and TensorMetadata in torch/_subclasses/fake_tensor.py, torch 2.13.
    """

    def __init__(self, mode: Any) -> None:
        self._mode = mode
        self._by_torch = mode._prep_args_for_hash

    def add(self, key: list[object], args: Any, *rest: Any) -> None:
        """Append to a key what says how arguments look.

        Args:
            key: A part of it has been written.
            args: All arguments, or the elements of one.
            rest: What else torch takes.
        """
        if type(args) not in (tuple, list):
            self._by_torch(key, args, *rest)
            return
        key += (type(args), len(args))
        for arg in args:
            kind = type(arg)
            if kind in _SAME_AS_ITSELF:
                key += (kind, arg)
            elif kind is FakeTensor and self._is_plain(arg):
                key.append(_look(arg))
            elif kind in (tuple, list):
                self.add(key, arg, *rest)
            else:
                self._by_torch(key, [arg], *rest)

    def _is_plain(self, tensor: Any) -> bool:
        return tensor.fake_mode is self._mode and tensor.constant is None and tensor.layout is torch.strided


def _look(tensor: Any) -> tuple[object, ...]:
    """Return all that the result of an operator may depend on, of a plain fake tensor. NOTE [Known operators]."""
    return (
        tensor.dtype,
        tensor.shape,
        ops.stride(tensor),
        tensor.fake_device,
        ops.storage_offset(tensor),
        ops.untyped_storage(tensor).nbytes(),
        tensor.requires_grad,
        tensor.is_quantized,
        ops.is_conj(tensor),
        ops.is_neg(tensor),
        ops.is_inference(tensor),
    )


def answers_device(func: Any, args: tuple[Any, ...]) -> bool:
    """Return whether an operator only reads the device of a fake tensor, so that `args[0].fake_device` is its result.

    The engine reads three for each node, and each would go through all modes. Source: FakeTensorMode.dispatch.
    """
    return func is _DEVICE_OF and type(args[0]) is FakeTensor and type(args[0].fake_device) is torch.device


def known_number(func: Any, args: tuple[Any, ...]) -> Any:
    """Return what an operator reads of a fake tensor that knows its value, as a counter of an optimizer's steps does.

    None: it does something else, or the value is not known. Torch would take as long for it as for any operator that it
    has not run before.
    """
    if func is not reads_scalar or type(args[0]) is not FakeTensor or args[0].constant is None:
        return None
    with unset_fake_temporarily():
        return func(args[0].constant)


def is_on_meta(tensor: Any) -> bool:
    """Return whether a tensor has no memory in a real run either."""
    if isinstance(tensor, FakeTensor):
        return bool(tensor.fake_device.type == "meta")
    return bool(tensor.is_meta)


def device_of(tensor: Any) -> Any:
    """Return where the memory of a tensor would be; that of a fake one is on meta."""
    return tensor.fake_device if isinstance(tensor, FakeTensor) else tensor.device


def loader_patches(make: Any) -> tuple[Patch, ...]:
    """Patch the start and the continuation of data loaders."""
    return Patch(dataloader.DataLoader, "__iter__", make), Patch(
        getattr(dataloader, "_BaseDataLoaderIter", dataloader.DataLoader), "__next__", make
    )


def apply_patch(make: Any) -> Patch:
    """Patch what `Module.to` and similar methods call for each module."""
    return Patch(nn.Module, "_apply", make)


def truncated_normal_patch(make: Any) -> Patch:
    """Patch the function behind `nn.init.trunc_normal_`."""
    return Patch(nn.init, "_no_grad_trunc_normal_", make)


def deepcopy_patch(make: Any) -> Patch:
    """Patch how `copy.deepcopy` copies a tensor."""
    return Patch(torch.Tensor, "__deepcopy__", make)


def format_patch(make: Any) -> Patch:
    """Patch what formats a tensor in an f-string."""
    return Patch(torch.Tensor, "__format__", make)


def sharing_patch(make: Any) -> Patch:
    """Patch what moves a tensor into memory that processes share."""
    return Patch(torch.Tensor, "share_memory_", make)


def logging_patches() -> tuple[Patch, ...]:
    """Patch the logger of fake tensors, which prints a traceback of torch's own for each error that it raises."""
    if not _LOG.is_there:
        return ()
    return (Patch(sys.modules[_FAKE], "log", lambda original: Logger(original.name, CRITICAL + 1)),)


def reading_patches(make: Callable[[str, Any], Any]) -> tuple[Patch, ...]:
    """Patch what reads all elements of a tensor without an operator; fake tensors have a `tolist` of their own.

    Args:
        make: Makes the replacement, given the name and the original.
    """
    places = ((torch.Tensor, "numpy"), (torch.Tensor, "tolist"), (FakeTensor, "tolist"))
    return tuple(
        Patch(holder, name, partial(make, name), is_inherited=name not in vars(holder)) for holder, name in places
    )


def distribution_patch() -> Patch:
    """Disable the validation of distribution arguments."""
    return Patch(Distribution, "_validate_args", lambda _original: False)


def give_values(tensor: Any, values: torch.Tensor) -> None:
    """Let a fake tensor know its values, from which those of small results are computed, until something is written."""
    if isinstance(tensor, FakeTensor) and hasattr(tensor, "constant"):
        tensor.constant = values
        tensor.fake_mode.fake_tensor_converter.add_constant_storage_mapping(tensor)


def set_fake_device(tensor: Any, like: Any) -> None:
    """Set the device of a fake tensor to that of another."""
    if isinstance(tensor, FakeTensor) and isinstance(like, FakeTensor):
        tensor.fake_device = like.fake_device


def num_elements(tensor: torch.Tensor) -> int:
    """Return how many elements a sparse COO tensor stores; 0 if that is not known."""
    return int(_NNZ.value(tensor)) if _NNZ.is_there else 0


def with_elements(tensor: torch.Tensor, number: int, *, is_coalesced: bool) -> torch.Tensor:
    """Make a fake sparse COO tensor like one, which stores as many elements. Inside the fake mode."""
    if not _MAKE_SPARSE.is_there:
        return tensor
    num_sparse, shape = tensor.sparse_dim(), tuple(tensor.shape)
    indices = torch.empty((num_sparse, number), dtype=torch.int64, device=tensor.device)
    values = torch.empty((number, *shape[num_sparse:]), dtype=tensor.dtype, device=tensor.device)
    return _made_sparse(tensor, indices, values, is_coalesced)


def with_parts_of(tensor: torch.Tensor) -> torch.Tensor:
    """Make a fake sparse COO tensor of the elements of one. Inside the fake mode."""
    if not _MAKE_SPARSE.is_there:
        return tensor
    return _made_sparse(tensor, tensor._indices(), tensor._values(), tensor.is_coalesced())


def _made_sparse(like: torch.Tensor, indices: torch.Tensor, values: torch.Tensor, is_coalesced: bool) -> torch.Tensor:
    made: torch.Tensor = _MAKE_SPARSE.value.default(
        like.sparse_dim(), like.dense_dim(), tuple(like.shape), indices, values, dtype=like.dtype,
        layout=torch.sparse_coo, device=like.device, pin_memory=False, is_coalesced=is_coalesced,
    )  # fmt: skip
    return made
