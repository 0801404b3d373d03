"""How ranks communicate, and what they share: DTensor, and what `fully_shard` keeps of a module.

None of it is imported here: a program that uses it has imported it, and others should not have to wait for it. So the
names are looked up when they are first needed.
"""

import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from torch import nn

from gradinspect.torch_api.probes import Private, private

_NO_LOCAL = "the local shapes and bytes of DTensors are not shown"
_NO_NAMES = "parameters under fully_shard have no names"
_FULLY_SHARD = "torch.distributed.fsdp._fully_shard"


def communicates_by(backend: str) -> bool:
    """Return whether the program has a process group with a backend, such as gloo."""
    if not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return False
    return backend in torch.distributed.get_backend()


@cache
def _local_name() -> Private:
    return private("torch.distributed.tensor.DTensor._local_tensor", _NO_LOCAL)


def local_tensor(tensor: torch.Tensor) -> torch.Tensor | None:
    """Return what this rank has of a DTensor, without the node that `to_local()` would add; None for any other."""
    module = sys.modules.get("torch.distributed.tensor")
    if module is None or not isinstance(tensor, module.DTensor) or not _local_name().is_there:
        return None
    local: torch.Tensor = _local_name().value.__get__(tensor)
    return local


@cache
def _sharding_names() -> tuple[Private, ...]:
    return (
        private("torch.distributed.fsdp.FSDPModule._get_fsdp_state", _NO_NAMES),
        private(f"{_FULLY_SHARD}._fsdp_state.FSDPState:_fsdp_param_groups", _NO_NAMES,
                formerly=f"{_FULLY_SHARD}._fsdp_state.FSDPState:_fsdp_param_group"),
        private(f"{_FULLY_SHARD}._fsdp_param_group.FSDPParamGroup:fsdp_params", _NO_NAMES),
        private(f"{_FULLY_SHARD}._fsdp_param.FSDPParam:_module_info", _NO_NAMES),
        private(f"{_FULLY_SHARD}._fsdp_param.FSDPParam.unsharded_param", _NO_NAMES),
    )  # fmt: skip


def is_fully_sharded(module: nn.Module) -> bool:
    """Return whether `fully_shard` was applied to a module."""
    fsdp = sys.modules.get("torch.distributed.fsdp")
    return fsdp is not None and isinstance(module, getattr(fsdp, "FSDPModule", ()))


def gathered_parameters(module: nn.Module) -> Iterator[tuple[nn.Module, str, Any]]:
    """Yield the parameters that `fully_shard` gathers for a call of a module, each with its module and its name.

    The module has the sharded ones again when the call has ended; these are the leaves of the graph.
    """
    if not is_fully_sharded(module):
        return
    names = _sharding_names()
    if not all(name.is_there for name in names):
        return
    state_of, groups_name, *_ = names
    groups = getattr(state_of.value(module), groups_name.value, None)
    for group in groups if isinstance(groups, list) else filter(None, (groups,)):
        for parameter in group.fsdp_params:
            gathered = getattr(parameter, "unsharded_param", None)  # set by the first gathering
            if gathered is not None:
                info = parameter._module_info
                places = ((info.module, info.param_name),
                          *zip(info.shared_modules, info.shared_param_names, strict=True))  # fmt: skip
                for owner, name in places:
                    yield owner, name, gathered
