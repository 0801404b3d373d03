"""Compare the two runs of each checkpointed block, tensor by tensor: forward, and recomputation in backward.

NOTE [Both runs of a block]
`checkpoint(use_reentrant=False)` runs the block under hooks that get each saved tensor, in the forward pass and again
in backward, and raises if the tensors do not match. The two classes of hooks are globals of torch.utils.checkpoint, and
are replaced by subclasses that also store the line inside the block. The operator is the torch function that a mode is
forwarding: the recorder's mode in the forward pass, one of ours in backward, where torch has disabled the others.
Source: torch/utils/checkpoint.py, `_checkpoint_hook` and `_recomputation_hook`, torch 2.13.
"""

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple, Self
from weakref import WeakKeyDictionary

import torch

from gradinspect.checks.evidence.decisions import Line, decision
from gradinspect.checks.facts.graphs import KeptTensor, Mismatch, Redrawn
from gradinspect.graph import Frame, TensorInfo
from gradinspect.recording.frames import is_user_file, line_at, line_record, user_frames
from gradinspect.recording.recorder import CALL_MODE
from gradinspect.recording.threads.thread_modes import OTHER_CALL_MODE
from gradinspect.torch_api.checkpoints import FILE as CHECKPOINT_FILE
from gradinspect.torch_api.checkpoints import (
    checkpoint_patches,
    has_random_state,
    is_stop_of_recomputation,
    random_state,
    restores_random_state,
)
from gradinspect.torch_api.modes import FunctionMode, out_of_dynamo
from gradinspect.torch_api.patching.patches import patched
from gradinspect.torch_api.patching.replaced import asking
from gradinspect.torch_api.tensors import plain_tensors_only


class _Kept(NamedTuple):
    """One saved tensor; two are equal if the same line and operator saved a tensor of the same type."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    op: str | None
    lines: tuple[Line, ...]  # of the block, the innermost first; empty if it has none, as nn.Sequential


@dataclass
class _Run:
    """One run of a block."""

    called_at: tuple[CodeType, int] | None  # the line that called checkpoint()
    kept: list[_Kept] = field(default_factory=list)  # the tensors that it saved
    state: tuple[torch.Tensor, ...] = ()  # of random numbers at its start, if its second run gets others
    is_random: bool = False  # it drew some


class _Forwarding(FunctionMode):
    """Forwards every torch function, so that its name is on the stack."""

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return asking(func, args, kwargs, sys._getframe(1)).called(*args, **(kwargs or {}))


_INTERCEPTING = frozenset(("__torch_function__", "__torch_dispatch__"))
_FORWARDING = frozenset((CALL_MODE, OTHER_CALL_MODE, _Forwarding.__torch_function__.__code__))


class CheckpointRuns:
    """Compares the runs of each block while it is active. Use it as a context manager."""

    def __init__(self, base_folder: Path) -> None:
        """Set up.

        Args:
            base_folder: Files below it are named relative to it.
        """
        self._base_folder = base_folder
        self._first: WeakKeyDictionary[Any, _Run] = WeakKeyDictionary()
        self._mismatches: list[Mismatch | Redrawn] = []
        self._patched = ExitStack()

    def __enter__(self) -> Self:
        """Replace the hooks of torch.utils.checkpoint."""
        patches = checkpoint_patches(
            lambda original: _first_hook(original, self._first), lambda original: _again_hook(original, self._compare)
        )
        self._patched.enter_context(patched(*patches))
        return self

    def __exit__(self, *_error: object) -> None:
        """Restore the originals."""
        self._patched.close()

    def take(self) -> list[Mismatch | Redrawn]:
        """Return how runs differed, as found since the last call."""
        found, self._mismatches = self._mismatches, []
        return found

    def _compare(self, block: Any, again: Sequence[_Kept]) -> None:
        """Compare a recomputation with the first run, when it has ended."""
        run = self._first.get(block)
        if run is None or getattr(block, "ignore_saved_mismatch", False):
            return
        first = run.kept
        position = next(
            (place for place, pair in enumerate(zip(first, again, strict=False)) if not _are_alike(*pair)),
            min(len(first), len(again)),
        )
        if position < max(len(first), len(again)):
            self._mismatches.append(
                Mismatch(
                    position=position,
                    first=self._record(first, position, run),
                    again=self._record(again, position, run),
                    num_first=len(first),
                    decided=self._decided(first, again, position),
                    num_again=len(again),
                )
            )
        elif run.is_random:
            place = run.called_at
            self._mismatches.append(Redrawn(frame=None if place is None else line_record(*place, self._base_folder)))

    def _record(self, kept: Sequence[_Kept], position: int, run: _Run) -> KeptTensor | None:
        if position >= len(kept):
            return None
        shape, dtype, device, op, lines = kept[position]
        place = lines[0] if lines else run.called_at
        info = TensorInfo(shape=shape, dtype=str(dtype).removeprefix("torch."), device=str(device))
        return KeptTensor(info=info, op=op, frame=None if place is None else line_record(*place, self._base_folder))

    def _decided(self, first: Sequence[_Kept], again: Sequence[_Kept], position: int) -> Frame | None:
        """Find the line that decided between the runs, at the place where they part or the last that is known."""
        lines = [kept[min(position, len(kept) - 1)].lines if kept else () for kept in (first, again)]
        found = decision(lines[0] or lines[1], lines[1] or lines[0])
        return None if found is None else line_record(*found, self._base_folder)


def _first_hook(original: Any, first: "WeakKeyDictionary[Any, _Run]") -> Any:
    class _checkpoint_hook(original):  # noqa: N801  # torch's name
        def __init__(self, frame: Any) -> None:
            super().__init__(frame)
            user = next(user_frames(sys._getframe(1)), None)
            run = first[frame] = _Run(None if user is None else (user.f_code, line_at(user)))
            self._run = run
            self._is_redrawn = not restores_random_state(frame)
            self.pack_hook: Any = _recording(self.pack_hook, run.kept)

        def __enter__(self) -> None:
            if self._is_redrawn:
                self._run.state = random_state()
            super().__enter__()

        def __exit__(self, *error: Any) -> Any:
            result = super().__exit__(*error)
            if self._is_redrawn:
                self._run.is_random = not has_random_state(self._run.state)
                self._run.state = ()
            return result

    return _checkpoint_hook


def _again_hook(original: Any, compare: Any) -> Any:
    class _recomputation_hook(original):  # noqa: N801  # torch's name
        def __init__(self, target_frame_ref: Any, gid: Any) -> None:
            super().__init__(target_frame_ref, gid)
            self._block = target_frame_ref
            self._kept: list[_Kept] = []
            self._mode = _Forwarding()
            self.pack_hook: Any = out_of_dynamo(_recording(self.pack_hook, self._kept))

        def __enter__(self) -> None:
            super().__enter__()
            self._mode.__enter__()

        def __exit__(self, *error: Any) -> Any:
            self._mode.__exit__(*error)
            result = super().__exit__(*error)
            block = self._block()
            was_stopped = error and error[0] is not None and not is_stop_of_recomputation(error[0])
            if block is not None and not was_stopped:
                compare(block, self._kept)
            return result

    return _recomputation_hook


def _recording(pack: Any, kept: list[_Kept]) -> Any:
    @wraps(pack)  # torch marks its own hooks with attributes
    def pack_hook(tensor: torch.Tensor) -> Any:
        kept.append(_describe(tensor, sys._getframe(1)))
        return pack(tensor)

    return pack_hook


def _describe(tensor: torch.Tensor, frame: FrameType | None) -> _Kept:
    """Describe a tensor being saved, with the running torch function and the innermost line of the block."""
    op = None
    lines: list[Line] = []
    while frame is not None and frame.f_code.co_filename != CHECKPOINT_FILE:
        if frame.f_code.co_name in _INTERCEPTING:
            lines.clear()  # of a mode of the program, which may be active in one of the runs only
        elif is_user_file(frame.f_code.co_filename):
            lines.append((frame.f_code, line_at(frame)))
        if frame.f_code in _FORWARDING and op is None:
            op = getattr(frame.f_locals.get("func"), "__name__", None)
        frame = frame.f_back
    if frame is None:  # no block
        lines = []
    with plain_tensors_only():
        return _Kept(tuple(tensor.shape), tensor.dtype, tensor.device, op, tuple(lines))


def _are_alike(one: _Kept, other: _Kept) -> bool:
    op = None if other.op is None else one.op
    return one._replace(op=op, lines=one.lines[:1]) == other._replace(op=op and other.op, lines=other.lines[:1])
