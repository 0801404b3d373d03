"""How the program gave parameters their values: the last line that wrote to one, or else the line that made it."""

import math
from collections.abc import Callable

import torch

from gradinspect.checks.evidence.in_place.writes import WriteLog
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.backward_calls import LeafValues
from gradinspect.checks.facts.value_flow import OUTSIDE
from gradinspect.graph import Frame
from gradinspect.torch_api.patching.originals import ops, without_grad
from gradinspect.torch_api.tensors import plain_tensors_only


class LeafOrigins:
    """Looks up where the values of leaves come from."""

    def __init__(self, flow: Dataflow, writes: WriteLog, frame_of: Callable[[int | None], Frame | None]) -> None:
        """Set up.

        Args:
            flow: Has the calls that made tensors.
            writes: Those that wrote to them.
            frame_of: Returns a line by the number of its frame.
        """
        self._flow = flow
        self._writes = writes
        self._frame_of = frame_of

    def of(self, leaf: torch.Tensor | None) -> LeafValues | None:
        """Return what is known of a leaf."""
        if leaf is None:
            return None
        try:
            with plain_tensors_only():
                written = self._writes.last_by_program(leaf)
                made = self._flow.read(leaf).call
        except (RuntimeError, NotImplementedError):  # a kind of tensor without ordinary memory
            return None
        if written is not None:
            return LeafValues(written.op.strip("_"), self._frame_of(written.frame), lambda: _highest(leaf))
        if made == OUTSIDE:
            return None
        call = self._flow.calls[made]
        return LeafValues(call.name.strip("_"), self._frame_of(call.frame), lambda: _highest(leaf))


def _highest(leaf: torch.Tensor) -> float:
    try:
        with plain_tensors_only(), without_grad():
            return float(ops.item(ops.max(leaf)))
    except (RuntimeError, NotImplementedError, IndexError):  # it has no elements, or no memory
        return math.inf
