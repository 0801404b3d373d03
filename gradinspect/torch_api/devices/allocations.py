"""Reference counts of storages, and allocations that no operator makes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from gradinspect.torch_api.patching.originals import ops
from gradinspect.torch_api.patching.patches import Patch, patched
from gradinspect.torch_api.probes import private
from gradinspect.torch_api.tensors import key_of_storage

_RESIZE = private("torch._C.StorageBase.resize_", "fit does not see storages that are resized by hand", is_rare=True)
_TOO_MUCH = "fit counts gradients that meet once more than they need"
_NODE = private("torch._C._current_autograd_node", "fit does not name the node that runs", is_rare=True)
_TENSOR_USES = private("torch.Tensor._use_count", _TOO_MUCH, is_rare=True)
_STORAGE_USES = private("torch._C._storage_Use_Count", _TOO_MUCH, is_rare=True)

# The node that the engine runs on this thread; None outside backward.
running_node: Callable[[], Any] = _NODE.or_else(lambda: None)


def note_unknown_allocations() -> None:
    """Let the report say what is missing here."""
    for name in (_RESIZE, _NODE, _TENSOR_USES, _STORAGE_USES):
        if not name.is_there:
            name.note_missed()


def num_uses(tensor: torch.Tensor) -> tuple[int, int] | None:
    """Count who holds a tensor, and who holds its memory, in C++; None where torch does not say."""
    if not (_TENSOR_USES.is_there and _STORAGE_USES.is_there):
        return None
    return int(_TENSOR_USES.value(tensor)), int(_STORAGE_USES.value(key_of_storage(ops.untyped_storage(tensor))))


@contextmanager
def watched_allocations(on_resize: Callable[[Any], None], on_made: Callable[[torch.Tensor], None]) -> Iterator[None]:
    """Report what dispatch modes do not see.

    Args:
        on_resize: Called with a storage that `untyped_storage().resize_()` has just resized.
        on_made: Called with a tensor that was made without an operator.
    """

    def resizing(original: Any) -> Any:
        def resize_(self: Any, size: int) -> Any:
            result = original(self, size)
            on_resize(self)
            return result

        return resize_

    def making(original: Any) -> Any:
        def get_rng_state() -> torch.Tensor:
            state: torch.Tensor = original()
            on_made(state)
            return state

        return get_rng_state

    patches = [Patch(torch, "get_rng_state", making), Patch(torch.random, "get_rng_state", making)]
    storage = torch.UntypedStorage
    is_inherited = _RESIZE.is_there and "resize_" not in vars(storage)
    if is_inherited:
        storage.resize_ = _RESIZE.value  # so that there is something to patch
    try:
        with patched(*patches, Patch(storage, "resize_", resizing)):
            yield
    finally:
        if is_inherited:
            del storage.resize_
