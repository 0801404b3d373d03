"""The backward engine: intercepting its calls, and identifying its current task.

`Tensor.backward`, `autograd.backward` and `autograd.grad` all call the function `_engine_run_backward`, a global of two
modules. Only those two globals are replaced, nothing that a user refers to.
"""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
import torch.autograd.graph

from gradinspect.torch_api.dynamo import uncompiled
from gradinspect.torch_api.patching.patches import Patch, patched
from gradinspect.torch_api.probes import private

_NAME = "_engine_run_backward"
_NO_TASK = -1
_COMPILED = "torch._dynamo.compiled_autograd"  # never imported by us: a program that uses it has imported it
_DOORS = (
    private(f"torch.autograd.{_NAME}", is_essential=True),
    private(f"torch.autograd.graph.{_NAME}", "backward calls that start at a GradientEdge may not be seen"),
)
_TASK = private("torch._C._current_graph_task_id", "nested backward calls are counted too")
_PROFILER = private("torch.autograd._profiler_enabled", only_for="--timeline")

RunBackward = Callable[..., Any]


def intercepted_engine(make: Callable[[RunBackward], RunBackward]) -> AbstractContextManager[None]:
    """Intercept the engine temporarily.

    Args:
        make: Maps the function that runs the engine to its replacement.
    """
    return patched(*(Patch(holder, _NAME, make) for holder in (torch.autograd, torch.autograd.graph)))


@uncompiled
def current_task() -> int:
    """Return the number of the backward call running on this thread; -1 outside of any."""
    return int(_TASK.value()) if _TASK.is_there else _NO_TASK


def require_tasks(by: str) -> None:
    """Check that nested backward calls can be distinguished.

    Raises:
        GradInspectError: This torch does not number them.
    """
    _TASK.required(by)


@uncompiled
def is_inside_backward() -> bool:
    """Return whether this thread is already running a backward call."""
    return current_task() != _NO_TASK


def is_compiled_autograd() -> bool:
    """Return whether compiled autograd is on: a backward call is traced and compiled, with all hooks of nodes."""
    return bool(getattr(sys.modules.get(_COMPILED), "compiled_autograd_enabled", False))


def has_device_threads() -> bool:
    """Return whether the engine may run backward on threads of devices. No context of a device is made for it."""
    built = torch.accelerator.current_accelerator()
    is_initialized = None if built is None else getattr(getattr(torch, built.type, None), "is_initialized", None)
    return built is not None and (is_initialized is None or bool(is_initialized()))


def is_profiling() -> bool:
    """Return whether the program is running a profiler."""
    return bool(_PROFILER.required()())
