"""What a checkpointed block keeps until backward runs it again: its inputs.

NOTE [Where a checkpoint keeps its inputs]
`checkpoint(use_reentrant=False)` leaves an empty holder in place of each saved tensor. The inputs of the block are in
the frame that the unpack hook closes over, as saved tensors that no node shows. They are memory like any other.
Source: torch/utils/checkpoint.py, `_CheckpointFrame.saved_args`, torch 2.13.
"""

from collections.abc import Iterator
from types import FunctionType
from typing import Any

_HOLDER = ("torch.utils.checkpoint", "_Holder")
_FRAME = ("torch.utils.checkpoint", "_CheckpointFrame")
_MAX_DEPTH = 3  # the hook, and one that wraps it to explain errors


def is_checkpoint_holder(data: object) -> bool:
    """Tell whether this stands in the place of a tensor that backward will compute again."""
    return _name_of(type(data)) == _HOLDER


def checkpoint_inputs(unpack_hook: object) -> list[Any]:
    """Return what the frame behind an unpack hook keeps: tensors, or what an outer hook packed them as."""
    frame = next(_frames_behind(unpack_hook, _MAX_DEPTH), None)
    return [getattr(argument, "data", None) for argument in getattr(frame, "saved_args", ())]


def _frames_behind(hook: object, depth: int) -> Iterator[object]:
    if not isinstance(hook, FunctionType) or depth == 0:
        return
    for cell in hook.__closure__ or ():
        try:
            content = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
        if _name_of(type(content)) == _FRAME:
            yield content
        else:
            yield from _frames_behind(content, depth - 1)


def _name_of(kind: type) -> tuple[str, str]:
    return kind.__module__, kind.__qualname__
