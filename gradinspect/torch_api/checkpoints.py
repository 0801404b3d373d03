"""What `torch.utils.checkpoint` stores in place of saved tensors, and its hooks.

NOTE [Where a checkpoint keeps its inputs]
`checkpoint(use_reentrant=False)` stores an empty holder in place of each saved tensor. The inputs of the block are in
the frame that the unpack hook closes over: as saved tensors of no node, or, up to torch 2.11, as those of a node that
only this frame references. They are held memory like any other.
Source: torch/utils/checkpoint.py, `_CheckpointFrame`, torch 2.10 and 2.13.
"""

from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

import torch.utils.checkpoint

from gradinspect.torch_api.devices.graph_capture import is_capturing
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.patches import Patch
from gradinspect.torch_api.probes import private

_INPUTS = "what checkpointed blocks keep is not counted"
_COMPARED = "the two runs of checkpointed blocks are not compared"
_HOLDER = private("torch.utils.checkpoint._Holder", _INPUTS)
_FRAME = private("torch.utils.checkpoint._CheckpointFrame", _INPUTS)
_KEPT = private(
    "torch.utils.checkpoint._CheckpointFrame:saved_args",
    _INPUTS,
    formerly="torch.utils.checkpoint._CheckpointFrame:input_saver",
)
_FIRST = private("torch.utils.checkpoint._checkpoint_hook", _COMPARED)
_AGAIN = private("torch.utils.checkpoint._recomputation_hook", _COMPARED)
_STOPPED = private("torch.utils.checkpoint._StopRecomputationError", _COMPARED)
_REENTRANT = private("torch.utils.checkpoint.CheckpointFunction.forward.__code__", "reentrant checkpoints have no name")
_MAX_DEPTH = 3  # the hook, and a wrapper that explains errors

FILE = torch.utils.checkpoint.__file__
REENTRANT_FORWARD: CodeType | None = _REENTRANT.or_else(None)


def is_checkpoint_holder(data: object) -> bool:
    """Return whether this is the placeholder of a tensor that backward will recompute."""
    return _HOLDER.is_there and type(data) is _HOLDER.value


def checkpoint_inputs(unpack_hook: object) -> list[Any]:
    """Return what the frame behind an unpack hook holds: tensors, or what an outer hook packed them as."""
    frame = next(_frames_behind(unpack_hook, _MAX_DEPTH), None) if _FRAME.is_there and _KEPT.is_there else None
    kept = getattr(frame, _KEPT.value, None) if frame is not None else None
    if _KEPT.is_former:
        kept = getattr(
            getattr(kept, "grad_fn", None), "_raw_saved_tensors", None
        )  # never freed, because backward does not run it
    return [getattr(argument, "data", None) for argument in kept or ()]


def checkpoint_patches(first: Any, again: Any) -> tuple[Patch, ...]:
    """Patch the two hook classes under which a block runs, in the forward pass and in backward."""
    if not (_FIRST.is_there and _AGAIN.is_there and _STOPPED.is_there):
        return ()
    module = torch.utils.checkpoint
    return Patch(module, "_checkpoint_hook", first), Patch(module, "_recomputation_hook", again)


def restores_random_state(frame: object) -> bool:
    """Return whether a block is run again with the random numbers of its first run."""
    function = getattr(frame, "recompute_fn", None)
    if not isinstance(function, FunctionType) or "preserve_rng_state" not in function.__code__.co_freevars:
        return True
    cell = (function.__closure__ or ())[function.__code__.co_freevars.index("preserve_rng_state")]
    try:
        return bool(cell.cell_contents)
    except ValueError:  # not assigned
        return True


def random_state() -> tuple[torch.Tensor, ...]:
    """Return where the random number generators are: of the CPU, and of the current CUDA device if there is one."""
    with unobserved():  # torch.compile traces a block on fake tensors, which do not mix with these
        states = [torch.get_rng_state()]
        if torch.cuda.is_available() and torch.cuda.is_initialized() and not is_capturing():
            states.append(torch.cuda.get_rng_state())
        return tuple(states)


def has_random_state(state: tuple[torch.Tensor, ...]) -> bool:
    """Return whether the random number generators are where they were then."""
    now = random_state()
    with unobserved():
        return all(map(torch.equal, state, now))


def is_stop_of_recomputation(kind: Any) -> bool:
    """Return whether an exception only ends a block early, because everything needed has been computed."""
    return _STOPPED.is_there and issubclass(kind, _STOPPED.value)


def _frames_behind(hook: object, depth: int) -> Iterator[object]:
    if not isinstance(hook, FunctionType) or depth == 0:
        return
    for cell in hook.__closure__ or ():
        try:
            content = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
        if type(content) is _FRAME.value:
            yield content
        else:
            yield from _frames_behind(content, depth - 1)
