"""What a kernel allocates for itself, and frees before it returns: measured by running the kernel.

NOTE [Kernels that are run to be measured]
oneDNN's convolutions, recurrent layers and matrix products in half precision copy their arguments into layouts of their
own, how large only oneDNN knows; other matrix products copy a matrix whose rows and columns both have gaps, such as a
head of `einsum('ijh,jhf->ihf')`; attention has buffers for each thread. So each is run once, on zeros of the same
shapes, strides and dtypes, while torch's profiler lists what is allocated. So are some kernels that are
written in terms of others, and what converts operands of different dtypes. Equal ones are measured once. One that would
need more than a second or 128 MiB is not, and the report says so. What was measured is handed on to later runs of the
same program, by the text of what was run and on how many threads, as copies of a run have one. Which operators have
scratch was found by running torch's own samples of all of them, on torch 2.13.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import get_num_threads
from torch.autograd.profiler import profile

from gradinspect.recording.values.storages import plain_tensors
from gradinspect.torch_api.devices.profiler_turn import start_profiler, stop_profiler
from gradinspect.torch_api.devices.profiling import has_memory_events, profiled_events
from gradinspect.torch_api.engine import is_profiling
from gradinspect.torch_api.fakes import FakeTensor, num_elements, unset_fake_temporarily
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.operators import cpu_attention, cpu_attention_backward, operator_name
from gradinspect.torch_api.patching.originals import ops

MAX_TRIAL_BYTES = 2**27  # of the arguments
MAX_TRIAL_PRODUCTS = 2**33  # multiplications: about a second on one core
MATRIX_DIM = 2
UNKNOWN_SCRATCH = "Some kernels are too large to be run for their scratch memory, which is not counted."
OF_SPARSE = "Sparse tensors with as many elements as values say are not counted: --real measures them."
_HALF = (torch.float16, torch.bfloat16)


def _of_convolution(weight_place: int, args: tuple[Any, ...]) -> int:
    """For each pixel of the larger side, all weights."""
    weight = args[weight_place]
    others = [arg for arg in args[:3] if isinstance(arg, torch.Tensor) and arg is not weight]
    sides = [arg for arg in others if ops.dim(arg) == ops.dim(weight)]
    return max((ops.numel(side) // max(side.shape[1], 1) for side in sides), default=0) * int(ops.numel(weight))


def _of_recurrence(args: tuple[Any, ...]) -> int:
    """For each token two matrices of weights; the features come last."""
    return int(ops.numel(args[0]) // max(args[0].shape[-1], 1) * ops.numel(args[1]) * 2)


def _of_product(place: int, args: tuple[Any, ...]) -> int:
    """In half precision, and where a matrix must be copied first; other products need no scratch."""
    left, right = args[place : place + 2]
    needs_some = left.dtype in _HALF or not (_is_for_blas(left) and _is_for_blas(right))
    return int(ops.numel(left) * right.shape[-1]) if needs_some else 0


def _is_for_blas(matrix: torch.Tensor) -> bool:
    """Return whether BLAS can read a matrix, or each of a batch, where it is: rows or columns lie together."""
    if ops.dim(matrix) < MATRIX_DIM:
        return True
    (rows, columns), (down, right) = matrix.shape[-2:], ops.stride(matrix)[-2:]
    return bool((right == 1 and down >= max(columns, 1)) or (down == 1 and right >= max(rows, 1)))


def _of_attention(place: int, args: tuple[Any, ...]) -> int:
    """Queries times keys, and that times values; up to five such products in backward."""
    query, key = args[place : place + 2]
    return int(ops.numel(query) * key.shape[-2] * (5 if place else 2))


def _of_size(args: tuple[Any, ...]) -> int:
    return sum(int(ops.numel(tensor)) for tensor in plain_tensors(list(args)))


def _of_sparse(sparse: Sequence[torch.Tensor], args: tuple[Any, ...]) -> int:
    """For each element of a sparse matrix a row of the dense one."""
    dense = [arg.shape[-1] for arg in args if isinstance(arg, torch.Tensor) and arg.layout is torch.strided]
    return sum(map(num_elements, sparse)) * int(max((1, *dense)))


def _of_nothing(_args: tuple[Any, ...]) -> int:
    """Without scratch, unless an argument is sparse."""
    return 0


def _of_mixed(args: tuple[Any, ...]) -> int:
    """Where dtypes differ: operands are converted first."""
    dtypes = {arg.dtype for arg in args if isinstance(arg, torch.Tensor)}
    return _of_size(args) if len(dtypes) > 1 else 0


_ATEN = torch.ops.aten
_PRODUCTS: dict[Any, Callable[[tuple[Any, ...]], int]] = {  # how many numbers it multiplies, about; 0: without scratch
    _ATEN.convolution.default: partial(_of_convolution, 1),
    _ATEN.convolution_backward.default: partial(_of_convolution, 2),
    _ATEN.mkldnn_rnn_layer.default: _of_recurrence,
    _ATEN.mkldnn_rnn_layer_backward.default: _of_recurrence,
    _ATEN.mm.default: partial(_of_product, 0),
    _ATEN.bmm.default: partial(_of_product, 0),
    _ATEN.addmm.default: partial(_of_product, 1),
    _ATEN.baddbmm.default: partial(_of_product, 1),
    _ATEN.mv.default: partial(_of_product, 0),
    _ATEN.addmv.default: partial(_of_product, 1),
    cpu_attention: partial(_of_attention, 0),
    cpu_attention_backward: partial(_of_attention, 1),
}
_OF_SPARSE = frozenset(("t", "transpose", "_sparse_addmm"))  # others have some of dense tensors, too
_PUTS = (_ATEN.index_put.default, _ATEN.index_put_.default)
_HAVE_SCRATCH = frozenset((
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cumsum", "dist", "embedding_dense_backward",
    "gather", "index_add", "index_put", "isinf", "linalg_vector_norm", "logsumexp", "masked_scatter", "mean",
    "mse_loss", "native_batch_norm", "native_batch_norm_backward", "native_dropout_backward",
    "native_layer_norm_backward", "repeat", "roll", "scatter", "scatter_add", "scatter_reduce", "smooth_l1_loss",
    "soft_margin_loss", "sort", "sum", "_ctc_loss_backward", "_embedding_bag", "_embedding_bag_backward", "_fft_c2c",
    "_fft_c2r", "_fft_r2c", "_safe_softmax", "_trilinear",
))  # fmt: skip
_FAMILIES_WITH_SCRATCH = ("upsample_", "_upsample_")


def _counter_of(func: Any) -> Callable[[tuple[Any, ...]], int] | None:
    """Return how the work of an operator is estimated; None if it needs no scratch."""
    name = operator_name(func).removeprefix("aten.").rstrip("_")
    if name in _HAVE_SCRATCH or name.startswith(_FAMILIES_WITH_SCRATCH):
        return _of_size
    if name in _OF_SPARSE:
        return _of_nothing
    return _PRODUCTS.get(func, _of_mixed if torch.Tag.pointwise in func.tags else None)


class KernelScratch:
    """Measures kernels, each once."""

    def __init__(self, earlier: Mapping[str, int] | None = None) -> None:
        """Start with what earlier runs of the program have measured: bytes, by the text of what was run."""
        self.notes: dict[str, None] = {}
        self.measured = dict(earlier or {})
        self._known: dict[object, int] = {}
        self._counters: dict[Any, Callable[[tuple[Any, ...]], int] | None] = {}

    def bytes_of(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        """Return what an operator needs at its peak beyond its arguments; 0 if that is only what it returns.

        Also 0 if it cannot be asked: its arguments are symbolic or sparse, or it refuses zeros.
        """
        try:
            return self._bytes_of(func, args, kwargs)
        except Exception:  # the program goes on as it would
            return 0

    def _bytes_of(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        if func not in self._counters:
            self._counters[func] = _counter_of(func)
        count = self._counters[func]
        if count is None:
            return 0
        tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
        if not tensors or not all(map(_is_of_the_cpu, tensors)):
            return 0
        sparse = [one for one in tensors if one.layout is not torch.strided]
        if not all(one.layout is torch.sparse_coo and num_elements(one) for one in sparse):
            self.notes[OF_SPARSE] = None  # a fake one does not know how many elements it has
            return 0
        num_products = _of_sparse(sparse, args) if sparse else count(args)
        if not num_products:
            return 0
        looks = (tuple(map(_look, args)), tuple((name, _look(arg)) for name, arg in kwargs.items()))
        if (func, looks) not in self._known:
            num_bytes = sum(tensor.nbytes for tensor in plain_tensors([*args, *kwargs.values()]))
            is_small = num_bytes <= MAX_TRIAL_BYTES and num_products <= MAX_TRIAL_PRODUCTS
            if not is_small:
                self.notes[UNKNOWN_SCRATCH] = None
            self._known[func, looks] = self._measured_once(func, *looks) if is_small else 0
        return self._known[func, looks]

    def _measured_once(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: tuple[tuple[str, Any], ...]
    ) -> int:
        text = f"{get_num_threads()} {func} {args} {kwargs}"
        if text not in self.measured:
            self.measured[text] = _measured(func, args, kwargs)
        return self.measured[text]


def _measured(func: Callable[..., Any], args: tuple[Any, ...], kwargs: tuple[tuple[str, Any], ...]) -> int:
    """Run an operator on zeros that look like its arguments."""
    with unset_fake_temporarily(), unobserved():
        given = {name: _made(look) for name, look in kwargs}
        values = [_made(look) for look in args]
        if func in _PUTS:
            _select(*values[1:3])
        return run_measured(func, values, given)[1]


def _select(indices: list[torch.Tensor | None], values: torch.Tensor) -> None:
    """Let masks select as many elements as are put there."""
    number = values.shape[0] if ops.dim(values) else 0
    for index in indices:
        if index is not None and index.dtype is torch.bool:
            ops.fill_(ops.getitem(ops.view(index, -1), slice(number)), True)


class _SparseLook(NamedTuple):
    """The shape, elements and dtype of a sparse COO tensor, its sparse dimensions, and whether it is coalesced."""

    shape: tuple[int, ...]
    num_elements: int
    dtype: torch.dtype
    num_sparse: int
    is_coalesced: bool


class _Look(tuple[tuple[int, ...], tuple[int, ...], torch.dtype]):
    """The shape, strides and dtype of a tensor."""

    __slots__ = ()


def _look(arg: Any) -> Any:
    if isinstance(arg, torch.Tensor) and arg.layout is torch.sparse_coo:
        look = tuple(arg.shape), num_elements(arg), arg.dtype, ops.sparse_dim(arg), ops.is_coalesced(arg)
        return _SparseLook(*look)
    if isinstance(arg, torch.Tensor):
        return _Look((tuple(arg.shape), ops.stride(arg), arg.dtype))
    return tuple(map(_look, arg)) if isinstance(arg, list | tuple) else arg


def _made(look: Any) -> Any:
    """Make such an argument, with zeros."""
    if type(look) is _SparseLook:
        values = ops.zeros((look.num_elements, *look.shape[look.num_sparse :]), dtype=look.dtype)
        indices = ops.zeros((look.num_sparse, look.num_elements), dtype=torch.int64)
        return torch.sparse_coo_tensor(indices, values, look.shape, is_coalesced=look.is_coalesced)
    if type(look) is not _Look:
        return [_made(one) for one in look] if type(look) is tuple else look
    shape, stride, dtype = look
    return ops.zero_(ops.empty_strided(shape, stride, dtype=dtype, device=torch.device("cpu")))


def _is_of_the_cpu(tensor: Any) -> bool:
    return isinstance(tensor, FakeTensor) and tensor.fake_device.type == "cpu"


def run_measured(func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, int]:
    """Run an operator on real tensors, and return its result, and what it had at its peak; 0 if that is not known."""
    if is_profiling() or not has_memory_events():
        return func(*args, **kwargs), 0
    profiler = profile(use_kineto=True, profile_memory=True)
    start_profiler(profiler)
    try:
        result = func(*args, **kwargs)
    finally:
        stop_profiler(profiler)
    alive = peak = 0
    for event in sorted(profiled_events(profiler, "\0"), key=lambda event: event.time_ns):
        alive += event.num_bytes
        peak = max(peak, alive)
    return result, peak
