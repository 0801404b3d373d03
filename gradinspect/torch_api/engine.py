"""The engine that runs backward: the interceptor through which it is called, and which task it is at.

`Tensor.backward`, `autograd.backward` and `autograd.grad` all go through the function `_engine_run_backward`, which two
modules hold as a global. Those two globals are replaced, and nothing that a user can name.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
import torch.autograd.graph

from gradinspect.torch_api.dynamo import uncompiled
from gradinspect.torch_api.patches import Patch, patched
from gradinspect.torch_api.probes import private

_NAME = "_engine_run_backward"
_NO_TASK = -1
_DOORS = (
    private(f"torch.autograd.{_NAME}", is_essential=True),
    private(f"torch.autograd.graph.{_NAME}", "backward calls that begin at a GradientEdge may not be seen"),
)
_TASK = private("torch._C._current_graph_task_id", "backward calls inside another one are counted as well")
_PROFILER = private("torch.autograd._profiler_enabled", only_for="--timeline")

RunBackward = Callable[..., Any]


def engine_doors(make: Callable[[RunBackward], RunBackward]) -> AbstractContextManager[None]:
    """Stand in front of the engine for a while.

    Args:
        make: From the function that runs the engine to the one that stands in its place.
    """
    return patched(*(Patch(holder, _NAME, make) for holder in (torch.autograd, torch.autograd.graph)))


@uncompiled
def current_task() -> int:
    """Return the number of the backward call that runs on this thread; -1 outside any."""
    return int(_TASK.value()) if _TASK.is_there else _NO_TASK


def require_tasks(by: str) -> None:
    """Check that a backward call inside another one can be told from it.

    Raises:
        GradInspectError: This torch gives them no number.
    """
    _TASK.required(by)


@uncompiled
def is_inside_backward() -> bool:
    """Tell whether this thread, or the engine's thread it is, runs a backward call already."""
    return current_task() != _NO_TASK


def is_profiling() -> bool:
    """Tell whether the program has a profiler running."""
    return bool(_PROFILER.required()())
