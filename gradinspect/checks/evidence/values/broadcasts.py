"""Operators on two tensors whose result was broadcast: their shapes, line and node."""

from collections.abc import Callable, Sequence
from types import FrameType
from typing import NamedTuple

import torch

from gradinspect.checks.facts.value_flow import short_name
from gradinspect.checks.facts.values import LOSSES, GrownOperator, Shape
from gradinspect.checks.rules.losses.broadcasts import slipped_shape
from gradinspect.graph import Frame
from gradinspect.recording.recorder import Recorder

MAX_REMEMBERED = 10_000
_GROWING = {
    "sub": "sub", "subtract": "sub", "rsub": "rsub", "mul": "mul", "multiply": "mul", "div": "div", "divide": "div",
    "truediv": "div", "true_divide": "div", "rtruediv": "div", "rmul": "mul", "rdiv": "div",
    **{name: name for name in LOSSES},
}  # fmt: skip


def growing_operator(name: str) -> str | None:
    """Return the operator of a torch function, if its result may be broadcast by accident; otherwise None."""
    return _GROWING.get(short_name(name).strip("_"))


class _Grown(NamedTuple):
    sequence_nr: int
    op: str
    shapes: tuple[Shape, Shape]
    is_learned: tuple[bool, bool]
    frame: int | None


class BroadcastLog:
    """Stores operators whose broadcast looks accidental."""

    def __init__(self, recorder: Recorder) -> None:
        """Share the recorder's frames."""
        self._recorder = recorder
        self._grown: dict[int, _Grown] = {}

    def note(self, op: str, inputs: Sequence[torch.Tensor], sequence_nr: int, frame: FrameType | None) -> None:
        """Look at a call that has run.

        Args:
            op: The result of `growing_operator`.
            inputs: The tensors among its arguments.
            sequence_nr: The sequence number of the last node that it made.
            frame: The calling frame.
        """
        if len(inputs) < 2:
            return
        left, right = inputs[:2]
        if left.shape == right.shape:
            return
        if len(self._grown) >= MAX_REMEMBERED:
            self._recorder.errors.pass_over("operator on two shapes", f"after the first {MAX_REMEMBERED:,}")
            return
        shapes = tuple(left.shape), tuple(right.shape)
        learned = bool(left.requires_grad), bool(right.requires_grad)
        if slipped_shape(op, shapes, learned) is None:
            return
        number = self._recorder.frames.number_of(frame)
        self._grown[sequence_nr] = _Grown(sequence_nr, op, shapes, learned, number)

    def operators(self, frame_of: Callable[[int | None], Frame | None]) -> list[GrownOperator]:
        """List the stored operators."""
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
