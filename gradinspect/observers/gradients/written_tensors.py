"""The tensors that a program has written into, by its own names: what compiled code must have written, too.

What comes in: the frames of a backward call. What goes out: the tensors without a gradient that its variables hold, or
attributes of its modules. Parameters, buffers and losses are compared apart from them.
"""

from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Final

import torch
from torch import nn

from gradinspect.recording.names.variables import isinstance_safely, variables_from
from gradinspect.torch_api.patching.originals import ops
from gradinspect.torch_api.tensors import known_version

_MOST_ELEMENTS: Final = 2**26  # of one tensor: a data set that was scaled in place is not copied at each call


def tensors_by_name(
    frame: FrameType | None, modules: Iterable[tuple[str, nn.Module]], others: Iterable[torch.Tensor]
) -> dict[str, torch.Tensor]:
    """Find tensors of numbers that need no gradient, each by one name.

    Args:
        frame: The innermost frame of the program.
        modules: All modules, with their paths.
        others: What is compared anyway, such as buffers.
    """
    found: dict[str, torch.Tensor] = {}
    seen = {id(one) for one in others}
    for name, value in (*attributes_of(modules), *variables_from(frame)):
        if isinstance(value, torch.Tensor) and id(value) not in seen and name not in found and _is_plain(value):
            seen.add(id(value))
            found[name] = value
    return found


def is_written(tensor: torch.Tensor) -> bool:
    """Return whether anything was written into a tensor since it was made."""
    return bool(known_version(tensor))


def attributes_of(modules: Iterable[tuple[str, nn.Module]]) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors that are attributes of modules, and neither parameters nor buffers, by path."""
    for path, module in modules:
        for name, value in list(vars(module).items()):
            if isinstance_safely(value, (torch.Tensor,)):
                yield ".".join(filter(None, (path, name))), value


def _is_plain(tensor: torch.Tensor) -> bool:
    """Return whether rounding alone is all that may change its values: an index may be another one."""
    is_number = ops.is_floating_point(tensor) or ops.is_complex(tensor)
    return bool(is_number and not tensor.requires_grad and ops.numel(tensor) <= _MOST_ELEMENTS)
