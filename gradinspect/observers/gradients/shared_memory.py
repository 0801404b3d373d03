"""Which tensors of a program are views of the memory of another: what compiled code returns must still be a view.

What comes in: the frames of a backward call, and all modules. What goes out: the names of tensors that share memory
with an input, parameter or buffer. Results that share memory with each other alone are left out: a compiler may compute
each of them for itself.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import FrameType
from typing import NamedTuple

import torch
from torch import nn

from gradinspect.analyses.diff.compiled import StepValue
from gradinspect.observers.gradients.written_tensors import attributes_of
from gradinspect.recording.names.variables import variables_from
from gradinspect.recording.values.storages import storage_key
from gradinspect.torch_api.modules import own_buffers, own_parameters
from gradinspect.torch_api.patching.originals import ops
from gradinspect.torch_api.tensors import is_view


class MemoryOwner(NamedTuple):
    """Which memory a tensor is a view of."""

    key: int  # equal for those of one run that share memory
    owner: str = ""  # the input, parameter or buffer whose memory it is; empty: none, or it is that itself


def shown_by_name(frame: FrameType | None, modules: Iterable[tuple[str, nn.Module]]) -> dict[str, MemoryOwner]:
    """Find the memory that each tensor shows, and whose it is.

    Args:
        frame: The innermost frame of the program.
        modules: All modules, with their paths.
    """
    tensors: dict[str, torch.Tensor] = {}
    seen: set[int] = set()  # what eager returns as it is, as dropout in eval mode, is no view
    for name, tensor in _named(frame, list(modules)):
        if name not in tensors and id(tensor) not in seen and ops.numel(tensor):
            seen.add(id(tensor))
            tensors[name] = tensor
    keys = {name: key for name, tensor in tensors.items() if (key := storage_key(tensor)) is not None}
    owners: dict[int, str] = {}
    for name, key in keys.items():
        if tensors[name].grad_fn is None and not is_view(tensors[name]):
            owners.setdefault(key, name)
    for name, key in keys.items():  # only a result that is detached has no `grad_fn` there
        if tensors[name].grad_fn is not None and key in owners and not tensors[owners[key]].requires_grad:
            del owners[key]
    return {
        name: MemoryOwner(key, "" if owners.get(key) == name else owners.get(key, "")) for name, key in keys.items()
    }


def lost_and_gained(
    call: int, compiled: Mapping[str, MemoryOwner], eager: Mapping[str, MemoryOwner]
) -> Iterator[StepValue]:
    """Yield the tensors of both runs that share memory in one of them only.

    Args:
        call: The number of the backward call.
        compiled: What `shown_by_name` found in this run.
        eager: What it found in the eager run.
    """
    pairs = ((eager, compiled, "shared only in eager"), (compiled, eager, "shared only if compiled"))
    for one, other, problem in pairs:
        for name, shown in one.items():
            has_both = name in other and shown.owner in other
            if has_both and other[name].key != other[shown.owner].key:
                yield StepValue(
                    call=call, role="memory", name=f"{name} and {shown.owner}", dtype="", shape=(), norm=0.0,
                    problem=problem,
                )  # fmt: skip


def _named(frame: FrameType | None, modules: Iterable[tuple[str, nn.Module]]) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield parameters and buffers first, so that others are said to share theirs."""
    for path, module in modules:
        for name, value in (*own_parameters(module).items(), *own_buffers(module).items()):
            if value is not None:
                yield ".".join(filter(None, (path, name))), value
    for name, value in (*attributes_of(modules), *variables_from(frame)):
        if isinstance(value, torch.Tensor):
            yield name, value
