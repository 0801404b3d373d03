"""Operators on two tensors whose result was broadcast: their shapes, line and node."""

from collections.abc import Callable, Sequence
from types import FrameType

import torch
from msgspec.structs import replace

from gradinspect.checks.facts.broadcasts import LOSSES, GrownOperator, is_square_against_side, slipped_shape
from gradinspect.checks.facts.value_flow import short_name
from gradinspect.graph import Frame
from gradinspect.recording.recorder import Recorder

MAX_REMEMBERED = 10_000
_GROWING = {
    "sub": "sub", "subtract": "sub", "rsub": "rsub", "mul": "mul", "multiply": "mul", "div": "div", "divide": "div",
    "add": "add", "radd": "add", "truediv": "div",
    "true_divide": "div", "rtruediv": "div", "rmul": "mul", "rdiv": "div",
    **{name: name for name in LOSSES},
}  # fmt: skip


def growing_operator(name: str) -> str | None:
    """Return the operator of a torch function, if its result may be broadcast by accident; otherwise None."""
    return _GROWING.get(short_name(name).strip("_"))


class BroadcastLog:
    """Stores operators whose broadcast looks accidental."""

    def __init__(self, recorder: Recorder) -> None:
        """Share the recorder's frames."""
        self._recorder = recorder
        self._grown: dict[int, tuple[GrownOperator, int | None]] = {}

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
        if slipped_shape(op, shapes, learned) is None and not is_square_against_side(op, shapes, learned):
            return
        number = self._recorder.frames.number_of(frame)
        grown = GrownOperator(sequence_nr=sequence_nr, op=op, shapes=shapes, is_learned=learned)
        self._grown[sequence_nr] = grown, number

    def operators(self, frame_of: Callable[[int | None], Frame | None]) -> list[GrownOperator]:
        """List the stored operators."""
        return [replace(one, frame=frame_of(frame)) for one, frame in self._grown.values()]
