"""The stack that anomaly mode stores for each node's forward call."""

import sys
from collections.abc import Callable
from typing import Any

from gradinspect.torch_api.patching.patches import Patch
from gradinspect.torch_api.probes import private

_FORMAT = private("torch.fx.traceback.format_stack", "our frames may appear in the output of anomaly mode")


def anomaly_stack_patches(make: Callable[[Any], Any]) -> tuple[Patch, ...]:
    """Patch the function that anomaly mode calls for the stack.

    Source: torch/csrc/autograd/python_anomaly_mode.cpp `store_stack`, torch 2.13.
    """
    if not _FORMAT.is_there:
        return ()
    return (Patch(sys.modules["torch.fx.traceback"], "format_stack", make),)
