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
_VERSION = private("torch.Tensor._version", "saved tensors that were changed in place are not noticed")
_VIEW = private("torch.Tensor._is_view", "the makers of saved views are not shown")
_KEY = private("torch.UntypedStorage._cdata", "the memory of fake tensors cannot be told apart")
_IS_WRAPPED = private("torch._C._functorch.is_functorch_wrapped_tensor", _NO_FUNCTORCH)
_UNWRAP = private("torch._C._functorch.get_unwrapped", _NO_FUNCTORCH)
_PEEK = private("torch._C._functorch.peek_interpreter_stack", "values inside torch.func are not compared")
_FREE_WEAK = private("torch.UntypedStorage._free_weak_ref", "missing gradients are not looked for")
_WEAK = private("torch.UntypedStorage._weak_ref", "missing gradients are not looked for")
_FUNCTIONAL = private("torch._is_functional_tensor", "backward calls that a compiler makes may be recorded")
_AUTOCAST_OFF = private("torch._C._DisableAutocast", only_for="--gradcheck")

# Work on tensors as they are, whatever a subclass or a mode of the program does with torch functions.
plain_tensors_only: Callable[[], AbstractContextManager[None]] = _PLAIN.or_refuse()
# How often a tensor's memory was written in place. RuntimeError: an inference tensor, which does not count.
version_of: Callable[[torch.Tensor], int] = attrgetter("_version")


def _address(storage: Any) -> int:
    return int(storage.data_ptr())


# What is equal for storages that are one, while they live.
key_of_storage: Callable[[Any], int] = attrgetter("_cdata") if _KEY.is_there else _address


def without_autocast() -> Any:
    """Switch autocast off for a while."""
    return _AUTOCAST_OFF.required()()


def is_view(tensor: torch.Tensor) -> bool:
    """Tell whether a tensor is a view that autograd knows of."""
    return bool(tensor._is_view()) if _VIEW.is_there else True


def is_functional(tensor: torch.Tensor) -> bool:
    """Tell whether a compiler is recording this tensor's operators."""
    return bool(_FUNCTIONAL.value(tensor)) if _FUNCTIONAL.is_there else False


def is_transforming() -> bool:
    """Tell whether a transform of torch.func is running: its tensors do not tell their values."""
    return bool(_PEEK.value() is not None) if _PEEK.is_there else False


def unwrapped(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor that transforms of torch.func have wrapped, at any depth."""
    if _IS_WRAPPED.is_there and _UNWRAP.is_there:
        while _IS_WRAPPED.value(tensor):
            tensor = _UNWRAP.value(tensor)
    return tensor


def sparse_parts(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the indices and values of a COO tensor, coalesced or not."""
    return tensor._indices(), tensor._values()


def can_watch_storages() -> bool:
    """Tell whether memory can be remembered without being kept."""
    return _WEAK.is_there and _FREE_WEAK.is_there


def remember_storage(storage: Any) -> None:
    """Keep a storage's number from being used again, though not its memory, until `forget_storage`."""
    if can_watch_storages():
        storage._weak_ref()


def forget_storage(key: int) -> None:
    """Give up what `remember_storage` has kept."""
    if can_watch_storages():
        _FREE_WEAK.value(key)


def keeps_torch_function_off(override: Any) -> bool:
    """Tell whether this `__torch_function__` is the one that opts out of the protocol."""
    return _DISABLED.is_there and override is _DISABLED.value
