"""Whether two gradients are the same."""

import torch

from gradinspect.torch_api.tensors import plain_tensors_only

_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def is_same(first: torch.Tensor | None, second: torch.Tensor | None, *, to_the_bit: bool = False) -> bool | None:
    """Compare all elements of two gradients, with NaN equal to itself; `to_the_bit` distinguishes 0 from -0.

    Returns:
        None if their values cannot be read, as on the meta device.
    """
    if first is None or second is None:
        return first is second
    if first is second:
        return True
    with torch.no_grad(), plain_tensors_only():
        try:
            return _is_equal(first.detach(), second.detach(), to_the_bit=to_the_bit)
        except (RuntimeError, NotImplementedError, TypeError):
            return None


def _is_equal(first: torch.Tensor, second: torch.Tensor, *, to_the_bit: bool) -> bool:
    if first.shape != second.shape or first.dtype != second.dtype or first.layout != second.layout:
        return False
    if first.layout is not torch.strided:
        first, second = first.to_dense(), second.to_dense()
    if torch.equal(_bits(first), _bits(second)):
        return True
    return not to_the_bit and bool(((first == second) | (first.isnan() & second.isnan())).all())


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.resolve_conj().resolve_neg()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    return tensor.contiguous().view(_BITS[tensor.element_size()])
