"""Private properties of tensors: version, memory, wrapped tensor."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from operator import attrgetter
from typing import Any

import torch

from gradinspect.torch_api.patching.originals import ops
from gradinspect.torch_api.probes import private

_NO_FUNCTORCH = "tensors inside torch.func transforms are shown without their memory"
_PLAIN = private("torch._C.DisableTorchFunction", is_essential=True)
_DISABLED = private("torch._C._disabled_torch_function_impl", "inference fast paths may be disabled while we observe")
_VERSION = private("torch.Tensor._version", "tensor versions are not shown, and in-place writes are not checked")
_VIEW = private("torch.Tensor._is_view", "the nodes that made saved views are not shown")
_KEY = private("torch.UntypedStorage._cdata", "missing gradients are not checked")
_INDICES = private("torch.Tensor._indices", "the memory of sparse tensors is not counted")
_VALUES = private("torch.Tensor._values", "the memory of sparse tensors is not counted")
_LAZY_ZERO = private("torch._C.TensorBase._is_zerotensor", "zeros without memory are not told from other tensors")
_IS_WRAPPED = private("torch._C._functorch.is_functorch_wrapped_tensor", _NO_FUNCTORCH)
_UNWRAP = private("torch._C._functorch.get_unwrapped", _NO_FUNCTORCH)
_PEEK = private("torch._C._functorch.peek_interpreter_stack", "step does not call formulas by hand")
_FUNCTIONAL = private("torch._is_functional_tensor", "backward calls made by a compiler may be recorded")
_AUTOCAST_OFF = private("torch._C._DisableAutocast", only_for="--gradcheck")

# Use tensors directly, bypassing subclasses and modes of the program.
plain_tensors_only: Callable[[], AbstractContextManager[None]] = _PLAIN.or_refuse()

_peek: Callable[[], Any] = _PEEK.or_else(lambda: None)


def _no_version(_tensor: torch.Tensor) -> int:
    raise RuntimeError("This torch has no tensor versions.")


# How often a tensor's memory was written in place. RuntimeError: inference tensors do not count.
version_of: Callable[[torch.Tensor], int] = attrgetter("_version") if _VERSION.is_there else _no_version


def known_version(tensor: torch.Tensor) -> int | None:
    """Return the version of a tensor, or None if it does not count writes."""
    return None if ops.is_inference(tensor) or not _VERSION.is_there else version_of(tensor)


def is_lazy_zero(tensor: torch.Tensor) -> bool:
    """Return whether a tensor of zeros has no memory, as forward mode and torch.func make them; writing it crashes."""
    return _LAZY_ZERO.is_there and bool(_LAZY_ZERO.value(tensor))


def _address(storage: Any) -> int:
    return int(storage.data_ptr())


# A key that identifies a storage while it is alive.
key_of_storage: Callable[[Any], int] = attrgetter("_cdata") if _KEY.is_there else _address


def require_storage_keys(by: str) -> None:
    """Check that storages can be distinguished without their data.

    Raises:
        GradInspectError: This torch has no storage keys.
    """
    _KEY.required(by)


def require_autocast_switch() -> None:
    """Check that user code can be rerun without autocast.

    Raises:
        GradInspectError: This torch has no such switch.
    """
    _AUTOCAST_OFF.required()


def without_autocast() -> Any:
    """Disable autocast temporarily."""
    return _AUTOCAST_OFF.required()()


def is_released(tensor: torch.Tensor) -> bool:
    """Return whether a tensor's elements are gone, as `fully_shard` releases what it has gathered.

    Its memory was resized to nothing, and reading it would end the process.
    """
    try:
        return ops.untyped_storage(tensor).nbytes() == 0 and bool(ops.numel(tensor))  # torch.jit.trace records numel()
    except (RuntimeError, NotImplementedError, TypeError):  # it has none of its own
        return False


def grad_fn_of(tensor: torch.Tensor) -> Any:
    """Return the node that made a tensor, or None, also if torch refuses to say.

    It refuses for a view made in inference mode whose base was modified since.
    """
    with plain_tensors_only():
        return grad_fn_here(tensor)


def grad_fn_here(tensor: torch.Tensor) -> Any:
    """Return the same, where torch functions are already disabled."""
    try:
        return tensor.grad_fn
    except Exception:  # also what a subclass raises that has a property of its own
        return None


def is_leaf(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is a leaf for autograd; False if torch refuses to say."""
    with plain_tensors_only():
        return is_leaf_here(tensor)


def is_leaf_here(tensor: torch.Tensor) -> bool:
    """Return the same, where torch functions are already disabled."""
    try:
        return bool(tensor.is_leaf)
    except Exception:  # as above
        return False


def requires_grad_here(tensor: torch.Tensor) -> bool:
    """Return whether a tensor requires a gradient, where torch functions are already disabled."""
    return bool(_requires_grad(tensor))


def is_view(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is a view for autograd."""
    return bool(ops._is_view(tensor)) if _VIEW.is_there else True


def _no_view(_tensor: torch.Tensor) -> bool:
    return False


# Whether a tensor is known to show the memory of another one.
shows_known_memory: Callable[[torch.Tensor], bool] = ops._is_view if _VIEW.is_there else _no_view


def is_functional(tensor: torch.Tensor) -> bool:
    """Return whether a compiler is recording this tensor's operators."""
    return bool(_FUNCTIONAL.value(tensor)) if _FUNCTIONAL.is_there else False


def is_transforming() -> bool:
    """Return whether a torch.func transform is running, or may be: its tensors hide their values."""
    return bool(_PEEK.value() is not None) if _PEEK.is_there else True


def can_read_values() -> bool:
    """Return whether operators return tensors with readable values, as they do outside torch.func transforms."""
    return _peek() is None


def unwrapped(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor wrapped by torch.func transforms, at any depth."""
    if _IS_WRAPPED.is_there and _UNWRAP.is_there:
        while _IS_WRAPPED.value(tensor):
            tensor = _UNWRAP.value(tensor)
    return tensor


def sparse_parts(tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return the indices and values of a COO tensor, coalesced or not."""
    return (ops._indices(tensor), ops._values(tensor)) if _INDICES.is_there and _VALUES.is_there else ()


def can_watch_storages() -> bool:
    """Return whether storages can be distinguished without their data."""
    return _KEY.is_there


def keeps_torch_function_off(override: Any) -> bool:
    """Return whether this `__torch_function__` opts out of the protocol."""
    return _DISABLED.is_there and override is _DISABLED.value


_requires_grad: Callable[[torch.Tensor], Any] = torch.Tensor.requires_grad.__get__  # a subclass may have one that fails
