"""Weak references to tensors that torch does not take for the program's, and to storages.

`torch.utils.swap_tensors`, which `Module.to` uses for tensor subclasses, refuses a tensor that has a weak reference,
because it cannot know what is meant to follow: the object or its contents. Ours follow the object, as its name does.

torch keeps the Python object of a storage for as long as the storage itself, so a weak reference to the one says
whether the other is alive, and with it whether its key is still its own.
"""

import weakref
from types import ModuleType
from typing import Any

import torch
from torch.utils.weak import TensorWeakRef

from gradinspect.torch_api.patching.patches import Patch


class HiddenRef(weakref.ref[Any]):
    """A weak reference of ours, to a tensor or a storage."""

    __slots__ = ()


class HiddenTensorRef(TensorWeakRef):
    """A weak reference to a tensor whose Python object may be gone for a while."""

    def __init__(self, tensor: torch.Tensor) -> None:
        """Refer to a tensor."""
        self.ref = HiddenRef(tensor)


def hidden_refs_patch() -> Patch:
    """Hide our references from `torch.utils.swap_tensors`. Source: torch/utils/__init__.py, torch 2.13."""
    return Patch(torch.utils, "weakref", _Weakref)


class _Weakref:
    """The module `weakref` as torch.utils sees it."""

    def __init__(self, original: ModuleType) -> None:
        self._original = original

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def getweakrefs(self, tensor: Any) -> list[Any]:
        """List the weak references that are not ours."""
        return [one for one in self._original.getweakrefs(tensor) if type(one) is not HiddenRef]
