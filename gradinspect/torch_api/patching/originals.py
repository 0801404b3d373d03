"""Torch's own functions on tensors, whatever a program has put in their places.

NOTE [Our own calls]
A program may replace `torch.Tensor.sum` or `torch.stack`, to count calls or to change what they do, and a subclass may
have methods of its own. What we compute with the program's tensors must not be among these calls. So a function on
tensors is called by `ops`: `ops.sum(x)`, `ops.stack(xs)`. They are taken from the base class of tensors and from the
object on which torch finds its functions; nobody can change these two. Operators look up methods too: `x * 2` is
`ops.mul(x, 2)`, and `bool(x)` is `bool(ops.item(x))`. What tests of programs mock in the standard library, such as the
clock, is imported by name, before the program runs: `perf_counter()`, and not `time.perf_counter()`. Modes and
`__torch_function__` are still asked, unless they are off: see `unobserved`.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

from gradinspect.torch_api.probes import private

_SEEN = "what a program puts in the place of a function of torch is called by us too"
_BASE = private("torch._C.TensorBase", _SEEN)
_FUNCTIONS = private("torch._C._VariableFunctions", _SEEN)
_VECTOR_NORM = private("torch._C._linalg.linalg_vector_norm", _SEEN)
_IS_GRAD_ENABLED = private("torch._C.is_grad_enabled", _SEEN)
_SET_GRAD_ENABLED = private("torch._C._set_grad_enabled", _SEEN)
_DEFAULT_DTYPE = private("torch._C.get_default_dtype", _SEEN)


def _ops() -> SimpleNamespace:
    base, holder = _BASE.or_else(torch.Tensor), _FUNCTIONS.or_else(torch)
    methods = {name: getattr(base, name) for name in dir(base) if not name.startswith("__")}
    functions = {name: getattr(holder, name) for name in dir(holder) if not name.startswith("_")}
    special = {
        "getitem": base.__getitem__,
        "setitem": base.__setitem__,
        "vector_norm": _VECTOR_NORM.or_else(torch.linalg.vector_norm),
    }
    return SimpleNamespace(**{**methods, **functions, **special})


# Functions and methods of tensors by name. Where torch has both, it is the function.
ops: Any = _ops()
is_grad_enabled: Callable[[], bool] = _IS_GRAD_ENABLED.or_else(torch.is_grad_enabled)
set_grad_enabled: Callable[[bool], object] = _SET_GRAD_ENABLED.or_else(torch.set_grad_enabled)
get_default_dtype: Callable[[], torch.dtype] = _DEFAULT_DTYPE.or_else(torch.get_default_dtype)
gradients_of: Callable[..., Any] = torch.autograd.grad


class _GradMode:
    __slots__ = ("_is_on", "_was_on")

    def __init__(self, is_on: bool) -> None:
        self._is_on = is_on

    def __enter__(self) -> None:
        self._was_on = is_grad_enabled()
        set_grad_enabled(self._is_on)

    def __exit__(self, *_error: object) -> None:
        set_grad_enabled(self._was_on)


def without_grad() -> _GradMode:
    """Return a context manager in which no gradients are recorded, as `torch.no_grad`."""
    return _GradMode(False)


def with_grad() -> _GradMode:
    """Return a context manager in which gradients are recorded, as `torch.enable_grad`."""
    return _GradMode(True)
