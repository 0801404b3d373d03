"""The stack that anomaly mode keeps of each node's forward call."""

import sys
from collections.abc import Callable
from typing import Any

from gradinspect.torch_api.patches import Patch
from gradinspect.torch_api.probes import private

_FORMAT = private("torch.fx.traceback.format_stack", "frames of ours may stand in what anomaly mode prints")


def anomaly_stack_patches(make: Callable[[Any], Any]) -> tuple[Patch, ...]:
    """Patch what anomaly mode asks for the stack.

    Source: torch/csrc/autograd/python_anomaly_mode.cpp `store_stack`, torch 2.13.
    """
    if not _FORMAT.is_there:
        return ()
    return (Patch(sys.modules["torch.fx.traceback"], "format_stack", make),)
