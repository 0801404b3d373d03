"""Whether two gradients are the same."""

import torch

from gradinspect.recording.values.magnitudes import bits_of, dense_of
from gradinspect.torch_api.patching.originals import ops, without_grad
from gradinspect.torch_api.tensors import plain_tensors_only


def is_same(first: torch.Tensor | None, second: torch.Tensor | None, *, to_the_bit: bool = False) -> bool | None:
    """Compare all elements of two gradients, with NaN equal to itself; `to_the_bit` distinguishes 0 from -0.

    Returns:
        None if their values cannot be read, as on the meta device.
    """
    if first is None or second is None:
        return first is second
    if first is second:
        return True
    with plain_tensors_only(), without_grad():
        try:
            return _is_equal(ops.detach(first), ops.detach(second), to_the_bit=to_the_bit)
        except (RuntimeError, NotImplementedError, TypeError):
            return None


def _is_equal(first: torch.Tensor, second: torch.Tensor, *, to_the_bit: bool) -> bool:
    if first.shape != second.shape or first.dtype != second.dtype or first.layout != second.layout:
        return False
    first, second = dense_of(first), dense_of(second)
    if ops.equal(_bits(first), _bits(second)):
        return True
    if to_the_bit:
        return False
    are_nan = ops.logical_and(ops.isnan(first), ops.isnan(second))
    return bool(ops.item(ops.all(ops.logical_or(ops.eq(first, second), are_nan))))


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    tensor = ops.resolve_neg(ops.resolve_conj(tensor))
    if ops.is_complex(tensor):
        tensor = ops.view_as_real(tensor)
    return bits_of(ops.contiguous(tensor))
