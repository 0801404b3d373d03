"""What a tensor tells beyond its public attributes: its version, its memory, what it wraps."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from operator import attrgetter
from typing import Any

import torch

from gradinspect.torch_api.probes import private

_NO_FUNCTORCH = "tensors inside a transform of torch.func are shown without their memory"
_PLAIN = private("torch._C.DisableTorchFunction", is_essential=True)
_DISABLED = private("torch._C._disabled_torch_function_impl", "inference fast paths may be left while we watch")
_VERSION = private("torch.Tensor._version", "versions of tensors are not shown, and writes in place are not checked")
_VIEW = private("torch.Tensor._is_view", "the makers of saved views are not shown")
_KEY = private("torch.UntypedStorage._cdata", "missing gradients are not checked")
_INDICES = private("torch.Tensor._indices", "what sparse tensors hold is not counted")
_VALUES = private("torch.Tensor._values", "what sparse tensors hold is not counted")
_IS_WRAPPED = private("torch._C._functorch.is_functorch_wrapped_tensor", _NO_FUNCTORCH)
_UNWRAP = private("torch._C._functorch.get_unwrapped", _NO_FUNCTORCH)
_PEEK = private("torch._C._functorch.peek_interpreter_stack", "step does not call formulas by hand")
_FREE_WEAK = private("torch.UntypedStorage._free_weak_ref", "missing gradients are not checked")
_WEAK = private("torch.UntypedStorage._weak_ref", "missing gradients are not checked")
_FUNCTIONAL = private("torch._is_functional_tensor", "backward calls that a compiler makes may be recorded")
_AUTOCAST_OFF = private("torch._C._DisableAutocast", only_for="--gradcheck")

# Work on tensors as they are, whatever a subclass or a mode of the program does with torch functions.
plain_tensors_only: Callable[[], AbstractContextManager[None]] = _PLAIN.or_refuse()

_peek: Callable[[], Any] = _PEEK.or_else(lambda: None)


def _no_version(_tensor: torch.Tensor) -> int:
    raise RuntimeError("This torch does not count versions.")


# How often a tensor's memory was written in place. RuntimeError: an inference tensor, which does not count.
version_of: Callable[[torch.Tensor], int] = attrgetter("_version") if _VERSION.is_there else _no_version


def known_version(tensor: torch.Tensor) -> int | None:
    """Return the version of a tensor, or None of one that does not count its writes."""
    return None if tensor.is_inference() or not _VERSION.is_there else version_of(tensor)


def _address(storage: Any) -> int:
    return int(storage.data_ptr())


# What is equal for storages that are one, while they live.
key_of_storage: Callable[[Any], int] = attrgetter("_cdata") if _KEY.is_there else _address


def require_storage_keys(by: str) -> None:
    """Check that the memory of tensors without data can be told apart.

    Raises:
        GradInspectError: This torch gives it no number.
    """
    _KEY.required(by)


def require_autocast_switch() -> None:
    """Check that code of the user can be run again without autocast.

    Raises:
        GradInspectError: This torch has no such switch.
    """
    _AUTOCAST_OFF.required()


def without_autocast() -> Any:
    """Switch autocast off for a while."""
    return _AUTOCAST_OFF.required()()


def grad_fn_of(tensor: torch.Tensor) -> Any:
    """Return the node that made a tensor; None as well where torch refuses to tell.

    It refuses for a view that was made in inference mode once the base has been written.
    """
    try:
        with plain_tensors_only():
            return tensor.grad_fn
    except RuntimeError:
        return None


def is_leaf(tensor: torch.Tensor) -> bool:
    """Tell whether a tensor was made by no operator that autograd knows of; not so where torch refuses to tell."""
    with plain_tensors_only():
        return is_leaf_here(tensor)


def is_leaf_here(tensor: torch.Tensor) -> bool:
    """Tell the same, where torch functions are switched off already."""
    try:
        return bool(tensor.is_leaf)
    except RuntimeError:
        return False


def is_view(tensor: torch.Tensor) -> bool:
    """Tell whether a tensor is a view that autograd knows of."""
    return bool(tensor._is_view()) if _VIEW.is_there else True


def is_functional(tensor: torch.Tensor) -> bool:
    """Tell whether a compiler is recording this tensor's operators."""
    return bool(_FUNCTIONAL.value(tensor)) if _FUNCTIONAL.is_there else False


def is_transforming() -> bool:
    """Tell whether a transform of torch.func is running, or may be: its tensors do not tell their values."""
    return bool(_PEEK.value() is not None) if _PEEK.is_there else True


def tells_values() -> bool:
    """Tell whether operators give tensors whose values can be read: inside a transform of torch.func they do not."""
    return _peek() is None


def unwrapped(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor that transforms of torch.func have wrapped, at any depth."""
    if _IS_WRAPPED.is_there and _UNWRAP.is_there:
        while _IS_WRAPPED.value(tensor):
            tensor = _UNWRAP.value(tensor)
    return tensor


def sparse_parts(tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return the indices and values of a COO tensor, coalesced or not."""
    return (tensor._indices(), tensor._values()) if _INDICES.is_there and _VALUES.is_there else ()


def can_watch_storages() -> bool:
    """Tell whether memory can be remembered without being kept."""
    return _CAN_WATCH


_CAN_WATCH = _KEY.is_there and _WEAK.is_there and _FREE_WEAK.is_there


def remember_storage(storage: Any) -> None:
    """Keep a storage's number from being used again, though not its memory, until `forget_storage`."""
    if _CAN_WATCH:
        storage._weak_ref()


def forget_storage(key: int) -> None:
    """Give up what `remember_storage` has kept."""
    if _CAN_WATCH:
        _FREE_WEAK.value(key)


def keeps_torch_function_off(override: Any) -> bool:
    """Tell whether this `__torch_function__` is the one that opts out of the protocol."""
    return _DISABLED.is_there and override is _DISABLED.value
