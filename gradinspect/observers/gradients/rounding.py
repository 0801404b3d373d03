"""Run a program with other roundings: each result of an operator is moved by up to one unit in its last place.

NOTE [Roundings of a sum]
A sum of n terms rounds n times on its way. Added up one by one, terms of either sign are off by about a unit of the sum
of their sizes, however small the sum itself is. That is what comes out if each term is moved by up to sqrt(n) units.
Sums of half precision are added up in float32, so their terms are left.

NOTE [What is exact is left]
What only moves or selects elements has nothing to round, and programs compare such results (`x == x.max()`). Random
numbers stay as they are drawn, so that both runs drop out the same elements.

NOTE [Operators of the program run once]
It is not known what they write, nor where: a schema need not say. A compiler calls them as they are, so
their sums are those of eager.
"""

from collections.abc import Iterator
from typing import Any, Final

import torch

from gradinspect.torch_api.flops import call_flops
from gradinspect.torch_api.modes import TorchDispatchMode
from gradinspect.torch_api.operators import operator_name, operator_schemas
from gradinspect.torch_api.patching.originals import ops
from gradinspect.torch_api.tensors import is_lazy_zero

_EXACT_NAMES: Final = """
    abs alias amax amin arange argmax argmin as_strided bernoulli bernoulli_ cat ceil clamp clamp_ clamp_max
    clamp_min clone constant_pad_nd copy_ cummax cummin detach detach_ embedding expand exponential_ fill fill_
    flip floor full full_like gather index index_put index_put_ index_select isfinite isnan lift_fresh
    masked_fill masked_fill_ masked_select max max_pool2d_with_indices maximum median min minimum multinomial
    native_dropout neg new_full new_ones new_zeros normal normal_ ones ones_like rand rand_like randn randn_like
    random_ relu relu_ repeat repeat_interleave reshape resize_ roll round scatter select select_backward
    select_scatter set_ sign slice slice_backward slice_scatter diagonal_scatter diagonal_backward
    as_strided_scatter sort split stack threshold threshold_backward topk trunc unfold uniform_ unsafe_chunk
    where zero_ zeros zeros_like empty empty_like empty_strided new_empty new_empty_strided
"""
_EXACT: Final = frozenset(_EXACT_NAMES.split())
_CAST: Final = "_to_copy"
_OWN: Final = ("aten.", "prims.")  # namespaces of torch
_WIDE: Final = frozenset((torch.float32, torch.float64, torch.complex64, torch.complex128))
_NARROW: Final = frozenset((torch.float16, torch.bfloat16))


class OtherRoundings(TorchDispatchMode):
    """Moves the results of operators while it is active."""

    def __init__(self, seed: int) -> None:
        """Draw from generators of its own.

        Args:
            seed: Of the roundings.
        """
        super().__init__()
        self._seed = seed
        self._generators: dict[torch.device, torch.Generator] = {}

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run the operator, and move what it has computed."""
        kwargs = kwargs or {}
        terms = _terms(func, args, kwargs)
        result = func(*(self._with_moved_terms(args, terms) if terms > 1 else args), **kwargs)
        for tensor in _computed(func, result):
            self._move(tensor)
        return result

    def _with_moved_terms(self, args: tuple[Any, ...], terms: float) -> tuple[Any, ...]:
        """Move the terms in the first tensor. NOTE [Roundings of a sum]."""
        place = next(place for place, one in enumerate(args) if isinstance(one, torch.Tensor))
        moved = ops.clone(args[place])
        self._move(moved, terms**0.5)
        return (*args[:place], moved, *args[place + 1 :])

    def _move(self, tensor: torch.Tensor, units: float = 1.0) -> None:
        unit = units * torch.finfo(tensor.dtype).eps
        real = ops.view_as_real(tensor) if ops.is_complex(tensor) else tensor
        if any(stride == 0 and size > 1 for stride, size in zip(real.stride(), real.shape, strict=True)):
            return  # several elements share memory
        moves = ops.empty_like(real)
        ops.uniform_(moves, -unit, unit, generator=self._generator(tensor.device))
        ops.mul_(moves, real)
        ops.add_(real, ops.where(ops.isfinite(moves), moves, ops.zeros_like(moves)))

    def _generator(self, device: torch.device) -> torch.Generator:
        if device not in self._generators:
            self._generators[device] = torch.Generator(device).manual_seed(self._seed)
        return self._generators[device]


def _computed(func: Any, result: Any) -> Iterator[torch.Tensor]:
    """Yield the results that have been rounded."""
    name = _name(func)
    returns = _one_schema(func).returns
    parts = result if isinstance(result, tuple | list) else (result,)
    if name in _EXACT or len(returns) != len(parts):
        return
    for kind, part in zip(returns, parts, strict=True):
        is_view = kind.alias_info is not None and not kind.alias_info.is_write
        if type(part) is torch.Tensor and not is_view and part.layout is torch.strided and _is_rounded(name, part):
            yield part


def _terms(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> float:
    """Return how many terms are added up for each element of a result; 1 where it is not known, or does not matter.

    The shape of the result is known by a first run, on copies of what the operator may write.
    """
    first = next((one for one in args if isinstance(one, torch.Tensor)), None)
    name = _name(func)
    if name in _EXACT or first is None or type(first) is not torch.Tensor or first.dtype not in _WIDE:
        return 1.0
    if not operator_name(func).startswith(_OWN):
        return 1.0  # NOTE [Operators of the program run once]
    if first.layout is not torch.strided or torch.Tag.nondeterministic_seeded in func.tags or _writes_first(func):
        return 1.0
    if "batch_norm" in name or _one_schema(func).is_mutable:  # not all schemas say that running statistics are written
        args = tuple(ops.clone(one) if isinstance(one, torch.Tensor) else one for one in args)
    result = func(*args, **kwargs)
    sizes = [ops.numel(one) for one in _computed(func, result)]
    if not sizes or not min(sizes):
        return 1.0
    flops = call_flops(func, args, kwargs, result) or 0
    return float(max(ops.numel(first) / min(sizes), flops / 2 / max(sizes)))


def _name(func: Any) -> str:
    return operator_name(func).partition(".")[2]


def _one_schema(func: Any) -> Any:
    (schema,) = operator_schemas(func, "")
    return schema


def _writes_first(func: Any) -> bool:
    return any(one.alias_info is not None for one in _one_schema(func).arguments[:1])


def _is_rounded(name: str, tensor: torch.Tensor) -> bool:
    if is_lazy_zero(tensor):
        return False
    if name == _CAST:
        return tensor.dtype in _NARROW
    return bool(ops.is_floating_point(tensor) or ops.is_complex(tensor))
