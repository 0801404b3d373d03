"""The accelerator of this torch, asked only in ways that make no context on it.

NOTE [Contexts]
`is_available()` and `device_count()` may ask the driver, after which copies of this process by `fork` cannot use the
device; everything that touches it makes a context, of hundreds of MiB. So a program that uses none must be looked at
without either. Source: torch/csrc/cuda/Module.cpp, poison_fork, torch 2.13.
"""

import os
from pathlib import Path
from typing import Any

import torch

_THREADS = Path("/proc/self/task")


def _module() -> Any:
    """Return `torch.cuda` or its like, for the accelerator that torch was built with; None without one."""
    accelerator = torch.accelerator.current_accelerator()
    return None if accelerator is None else getattr(torch, accelerator.type, None)


def is_there() -> bool:
    """Return whether torch was built with an accelerator, also where the machine has none."""
    return _module() is not None


def has_engine_threads() -> bool:
    """Return whether the autograd engine, which has run, has a thread for each device; no fork has them.

    The driver need not be asked: the engine starts them for devices that are there, and names them.
    Source: torch/csrc/autograd/engine.cpp `Engine::thread_init`, torch 2.13.
    """
    try:
        names = [(thread / "comm").read_bytes() for thread in _THREADS.iterdir()]
    except OSError:
        return is_there()  # another system, or a thread that has just ended
    return any(name.startswith(b"pt_autograd_") for name in names)


def is_used() -> bool:
    """Return whether the program has made a context on the accelerator."""
    module = _module()
    is_initialized = getattr(module, "is_initialized", None)
    return module is not None and (is_initialized is None or bool(is_initialized()))


def wait_for_device() -> None:
    """Wait until the accelerator has done what the program asked for, if it uses one."""
    if is_used():
        torch.accelerator.synchronize()


def has_expandable_segments() -> bool:
    """Return whether the environment asks CUDA's caching allocator for segments that grow; torch reads it late."""
    options = os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF") or ""
    return "expandable_segments:true" in options.replace(" ", "").lower()


def is_lost_in_fork() -> bool:
    """Return whether this process was forked from one that had used the accelerator, so that it cannot."""
    is_lost = getattr(_module(), "_is_in_bad_fork", False)
    return bool(is_lost() if callable(is_lost) else is_lost)
