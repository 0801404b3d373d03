"""Generated inputs for a callable: the user gives the shapes, and the values do not matter."""

from collections.abc import Sequence
from math import prod
from typing import Any

import torch

from gradinspect.errors import GradInspectError
from gradinspect.source import FLOAT_DTYPES, InputSpec
from gradinspect.torch_api.patching.originals import ops
from gradinspect.units import MAX_SIZE, format_bytes

SEED = 0
_CPU = "cpu"


def make_inputs(
    specs: Sequence[InputSpec], device: torch.device | None = None
) -> tuple[list[torch.Tensor], dict[str, torch.Tensor]]:
    """Make the tensors that the specs describe, the same ones each time, without using torch's global generator.

    Floats are normally distributed. Integers are 0 or 1, which is a valid index nearly everywhere; bools are True. They
    are made on the CPU, so that they are the same on each device.

    Args:
        specs: Their shapes and dtypes.
        device: Where they go; by default, where the program makes its own.

    Returns:
        Positional and keyword arguments.

    Raises:
        GradInspectError: A size only has a name, or there is no memory for a tensor of that shape.
    """
    generator = torch.Generator("cpu").manual_seed(SEED)
    device = torch.get_default_device() if device is None else device
    positional: list[torch.Tensor] = []
    keywords: dict[str, torch.Tensor] = {}
    for spec in specs:
        _check_sizes(spec)
        try:
            tensor = _make(spec, generator)
        except (RuntimeError, MemoryError):
            raise _too_large(spec) from None
        tensor = ops.to(tensor, device)
        if spec.name is None:
            positional.append(tensor)
        else:
            keywords[spec.name] = tensor
    return positional, keywords


def _check_sizes(spec: InputSpec) -> None:
    """Check that each size has a number.

    Raises:
        GradInspectError: One only has a name.
    """
    named = next(filter(None, spec.size_names), None)
    if named is not None:
        raise GradInspectError(f"'{{{named}}}' in --input has no number.", f"Search for one: fit --search {named}.")


def _too_large(spec: InputSpec) -> GradInspectError:
    dtype: Any = getattr(torch, spec.dtype)
    shape, num_bytes = "x".join(map(str, spec.shape)), prod(spec.shape) * dtype.itemsize
    size = format_bytes(num_bytes) if num_bytes < MAX_SIZE else "more than 64 bits can count"
    return GradInspectError(
        f"The input '{shape}' cannot be made: it takes {size}.", "Give a smaller one, or --fake, which needs no memory."
    )


def _make(spec: InputSpec, generator: torch.Generator) -> torch.Tensor:
    dtype: Any = getattr(torch, spec.dtype)
    if spec.dtype == "bool":
        return ops.ones(spec.shape, dtype=dtype, device=_CPU)
    if spec.dtype in FLOAT_DTYPES:
        wide = torch.complex64 if dtype.is_complex else torch.float32
        return ops.to(ops.randn(spec.shape, generator=generator, dtype=wide, device=_CPU), dtype)
    return ops.to(ops.randint(0, 2, spec.shape, generator=generator, device=_CPU), dtype)
