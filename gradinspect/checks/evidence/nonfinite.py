"""The origin of a nonfinite loss: a parameter, or the earliest saved value that is not finite.

NOTE [What follows from a NaN]
A gradient that is NaN makes the weights NaN in the next step, and with them every later loss. So once something was
reported, what comes into a later graph from outside, or is made on a reported line, is a consequence.
"""

from collections.abc import Iterator, Sequence

import torch

from gradinspect.checks.facts.graphs import NonfiniteValue
from gradinspect.checks.findings import Finding, Place
from gradinspect.checks.rules.gradients.nonfinite_gradients import GRADIENT, LOSS, loss_finding
from gradinspect.graph import Frame, SavedValue
from gradinspect.recording.capture import WalkedGraph
from gradinspect.recording.saved import raw_tensor
from gradinspect.recording.walk import Walk
from gradinspect.runner.engine import EngineCall
from gradinspect.torch_api.modes import computes_by_itself, unobserved
from gradinspect.torch_api.originals import ops
from gradinspect.torch_api.tensors import is_released
from gradinspect.units import format_tensor


class NonfiniteValues:
    """Finds losses that are not finite, unless they follow from what was reported."""

    def __init__(self) -> None:
        """Start before the first call."""
        self.explains = False  # whether the gradients of the latest call follow from what was reported
        self._reported: set[Place] = set()  # where a NaN was made
        self._has_reported = False

    def findings(self, walked: WalkedGraph, call: EngineCall, backward: Frame | None) -> Iterator[Finding]:
        """Look at a call that is about to start. NOTE [What follows from a NaN]."""
        self.explains = self._has_reported and _nonfinite_leaf(walked) is not None
        value = None if self.explains else nonfinite_value(walked, call)
        if value is None:
            return
        finding = loss_finding(walked.graph, value, backward)
        is_known = value.node is None or not self._reported.isdisjoint(finding.places[:1])
        self.explains = self._has_reported and is_known
        if not self.explains:
            self._note(finding)
            yield finding

    def judged(self, findings: Sequence[Finding]) -> None:
        """Store what was found in the gradients of a call."""
        for finding in findings:
            if finding.code in (GRADIENT.code, LOSS.code):
                self._note(finding)

    def _note(self, finding: Finding) -> None:
        self._has_reported = True
        self._reported.update(finding.places[:1])


def nonfinite_value(walked: WalkedGraph, call: EngineCall) -> NonfiniteValue | None:
    """Search the parameters, then the saved values from the first node of the forward pass; None if all is finite.

    Only saved values are known, so the reported operator may come slightly after the cause. The fallback is the output
    itself.
    """
    with unobserved():
        if not any(isinstance(output, torch.Tensor) and not _is_finite(output) for output in call.outputs):
            return None
        leaf = _nonfinite_leaf(walked)
        if leaf is not None:
            return NonfiniteValue(node=None, label=leaf)
        nodes = walked.graph.nodes
        for number in range(len(nodes) - 1, -1, -1):
            for value in nodes[number].saved:
                found = _judge(number, value, walked.walk)
                if found is not None:
                    return found
        is_nan = any(isinstance(output, torch.Tensor) and _has_nan(output) for output in call.outputs)
    return NonfiniteValue(node=0, label="the loss itself", is_nan=is_nan)


def _nonfinite_leaf(walked: WalkedGraph) -> str | None:
    with unobserved():
        for number, tensor in walked.walk.leaves().items():
            if not _is_finite(tensor):
                leaf = walked.graph.nodes[number].leaf
                return (None if leaf is None else leaf.name) or f"#{number}"
    return None


def _judge(number: int, value: SavedValue, walk: Walk) -> NonfiniteValue | None:
    if value.status != "live" or value.tensor is None:
        return None
    tensor = raw_tensor(walk.nodes[number], value)
    if tensor is None or _is_finite(tensor):
        return None
    maker = number if value.origin == "output" else value.tensor.made_by
    name = value.origin_name or f"a {format_tensor(value.tensor.info)}"
    if maker is None:  # a constant such as a mask may contain infinities on purpose
        return NonfiniteValue(node=None, label=name) if _has_nan(tensor) else None
    is_nan = _has_nan(tensor)
    label = f"{format_tensor(value.tensor.info)} with {'NaN' if is_nan else 'Inf'}"
    return NonfiniteValue(node=maker, label=label, is_nan=is_nan)


def _has_nan(tensor: torch.Tensor) -> bool:
    return bool(ops.item(ops.any(ops.isnan(tensor))))


def _is_finite(tensor: torch.Tensor) -> bool:
    has_numbers = ops.is_floating_point(tensor) or ops.is_complex(tensor)
    if not has_numbers or computes_by_itself(tensor) or is_released(tensor):
        return True
    try:
        return bool(ops.item(ops.all(ops.isfinite(ops.detach(tensor)))))
    except (RuntimeError, NotImplementedError):
        return True
