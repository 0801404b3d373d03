"""Operators on two tensors that grew by broadcasting, as they run: shapes, line, and the node they belong to."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch.nn import functional

from gradinspect.analyses.checks.broadcasts import GrownOperator, Shape, grown_shape
from gradinspect.capture.frames import is_user_file
from gradinspect.capture.recorder import Recorder
from gradinspect.graph import Frame
from gradinspect.torch_api.nodes import next_sequence_nr

MAX_REMEMBERED = 10_000
_ATEN = torch.ops.aten
_LOSSES = (_ATEN.mse_loss.default, _ATEN.huber_loss.default, _ATEN.smooth_l1_loss.default)
GROWING = frozenset((_ATEN.sub.Tensor, _ATEN.rsub.Tensor, _ATEN.mul.Tensor, _ATEN.div.Tensor, *_LOSSES))
_OF_TORCH = functional.__file__


class _Grown(NamedTuple):
    sequence_nr: int
    op: str
    shapes: tuple[Shape, Shape]
    is_learned: tuple[bool, bool]
    frame: int | None


class BroadcastLog:
    """Remembers operators that grew in a way that looks like a slip."""

    def __init__(self, recorder: Recorder) -> None:
        """Share the recorder's frames."""
        self._recorder = recorder
        self._grown: dict[int, _Grown] = {}

    def note(self, func: Any, args: tuple[Any, ...]) -> None:
        """Look at one of `GROWING` that is about to run; its node was the last one made."""
        left, right = args[0], args[1]
        if not (isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor) and torch.is_grad_enabled()):
            return
        caller = sys._getframe(2)
        shapes = _shapes(left, right, caller)
        if shapes is None or grown_shape(*shapes) is None or len(self._grown) >= MAX_REMEMBERED:
            return
        number = next_sequence_nr() - 1
        frame = self._recorder.frames.number_of(caller)
        learned = bool(left.requires_grad), bool(right.requires_grad)
        self._grown[number] = _Grown(number, func.__name__.partition(".")[0], shapes, learned, frame)

    def operators(self, frame_of: Callable[[int | None], Frame | None]) -> list[GrownOperator]:
        """List what was seen."""
        return [
            GrownOperator(
                sequence_nr=seen.sequence_nr,
                op=seen.op,
                shapes=seen.shapes,
                is_learned=seen.is_learned,
                frame=frame_of(seen.frame),
            )
            for seen in self._grown.values()
        ]


def _shapes(left: torch.Tensor, right: torch.Tensor, caller: FrameType) -> tuple[Shape, Shape] | None:
    """Return two shapes as the program gave them; None where they cannot be a slip.

    The losses of torch.nn.functional expand both sides first, which leaves strides of 0. Source:
    torch/nn/functional.py, `mse_loss`, torch 2.13.
    """
    if left.dim() != right.dim():
        return tuple(left.shape), tuple(right.shape)
    if left.shape != right.shape or not (0 in left.stride() and 0 in right.stride()):
        return None
    if not _is_called_by_loss(caller):
        return None
    given = _before_expanding(left), _before_expanding(right)
    return given[0], given[1]


def _before_expanding(tensor: torch.Tensor) -> Shape:
    sizes = [size if stride else 1 for size, stride in zip(tensor.shape, tensor.stride(), strict=True)]
    while sizes and sizes[0] == 1:
        del sizes[0]
    return tuple(sizes)


def _is_called_by_loss(frame: FrameType | None) -> bool:
    """Tell whether torch.nn.functional stands between an operator and the program."""
    while frame is not None and not is_user_file(frame.f_code.co_filename):
        if frame.f_code.co_filename == _OF_TORCH:
            return True
        frame = frame.f_back
    return False
