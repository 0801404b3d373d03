"""The origin of a nonfinite loss: the earliest saved value that is not finite."""

import torch

from gradinspect.checks.rules.nonfinite_gradients import NonfiniteValue
from gradinspect.graph import SavedValue
from gradinspect.record.capture import WalkedGraph
from gradinspect.record.saved import raw_tensor
from gradinspect.record.walk import Walk
from gradinspect.runner.engine import EngineCall
from gradinspect.torch_api.modes import Unobserved, computes_by_itself
from gradinspect.units import format_tensor


def nonfinite_value(walked: WalkedGraph, call: EngineCall) -> NonfiniteValue | None:
    """Search the saved values, from the first node of the forward pass; None if the outputs are finite.

    Only saved values are known, so the reported operator may come slightly after the cause. The fallback is the output
    itself.
    """
    with Unobserved():
        if not any(isinstance(output, torch.Tensor) and not _is_finite(output) for output in call.outputs):
            return None
        nodes = walked.graph.nodes
        for number in range(len(nodes) - 1, -1, -1):
            for value in nodes[number].saved:
                found = _judge(number, value, walked.walk)
                if found is not None:
                    return found
    return NonfiniteValue(node=0, label="the loss itself")


def _judge(number: int, value: SavedValue, walk: Walk) -> NonfiniteValue | None:
    if value.status != "live" or value.tensor is None:
        return None
    tensor = raw_tensor(walk.nodes[number], value)
    if tensor is None or _is_finite(tensor):
        return None
    maker = number if value.origin == "output" else value.tensor.made_by
    name = value.origin_name or f"a {format_tensor(value.tensor.info)}"
    if maker is None:  # a constant such as a mask may contain infinities on purpose
        return NonfiniteValue(node=None, label=name) if bool(torch.isnan(tensor).any()) else None
    kind = "NaN" if bool(torch.isnan(tensor).any()) else "Inf"
    return NonfiniteValue(node=maker, label=f"{format_tensor(value.tensor.info)} with {kind}")


def _is_finite(tensor: torch.Tensor) -> bool:
    if computes_by_itself(tensor) or not (tensor.is_floating_point() or tensor.is_complex()):
        return True
    try:
        return bool(torch.isfinite(tensor.detach()).all())
    except (RuntimeError, NotImplementedError):
        return True
