"""Start and stop torch's profiler, of which a process has one.

NOTE [One profiler]
A second profiler, on whatever thread, ends the first one, and the process crashes when the first is stopped. So one
recording of ours waits for that of another thread. That one may wait for the thread that waits here, so nobody waits
longer than `PATIENCE_S` for the same one.
Source: torch/csrc/autograd/profiler_kineto.cpp, torch 2.13.

NOTE [Children after a profiler]
The first profiler starts a thread of libkineto, and when the process exits, libkineto waits for it: in a forked child,
which does not have that thread, forever. So a child that exits does so without the destructors of C++ libraries.
Source: libkineto/src/ConfigLoader.cpp, torch 2.13.
"""

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from threading import get_ident
from typing import Any

import torch.autograd.profiler

from gradinspect.errors import GradInspectError
from gradinspect.own_threads import signals_blocked
from gradinspect.torch_api.engine import is_profiling
from gradinspect.torch_api.patching.forks import call_in_children
from gradinspect.torch_api.patching.monitor import Monitor
from gradinspect.torch_api.patching.patches import Patch, patched
from gradinspect.torch_api.probes import private

PATIENCE_S = 60.0
_LEVEL = "KINETO_LOG_LEVEL"
_ENABLED = private("torch.autograd.profiler._is_profiler_enabled", "profilers of other threads are not noticed")
_BEGINS = tuple(
    private(f"torch.autograd.profiler.{name}", "'fit --real' does not notice profilers of the program", is_rare=True)
    for name in ("_prepare_profiler", "_run_on_profiler_start")
)


class _Turn:
    """Whose profiler runs."""

    monitor = Monitor()
    running: Any = None
    thread: int | None = None
    has_begun = False  # one of ours, in this process or in that which forked it


def start_profiler(profiler: Any) -> None:
    """Start a profiler of ours when no other runs, without libkineto's messages on stderr.

    libkineto reads its log level once, at first use.

    Raises:
        GradInspectError: The program runs one, or another recording does not end its own. NOTE [One profiler].
    """
    if is_profiling():
        raise GradInspectError(
            "The program runs its own profiler around this backward call.", "Choose another call with --backward."
        )
    is_ours = _LEVEL not in os.environ
    try:
        _take_turn(profiler)
        os.environ.setdefault(_LEVEL, "99")
        with signals_blocked():  # libkineto starts a thread
            profiler.__enter__()
    except BaseException:
        _end_turn(profiler)
        raise
    finally:
        if is_ours:
            os.environ.pop(_LEVEL, None)


def stop_profiler(profiler: Any) -> None:
    """Stop a profiler that `start_profiler` has started."""
    try:
        profiler.__exit__(None, None, None)
    finally:
        try:
            _end_turn(profiler)
        except BaseException:  # NOTE [Handlers that raise]
            _end_turn(profiler)
            raise


@contextmanager
def before_profilers(listener: Callable[[], None]) -> Iterator[None]:
    """Call a function before the program starts a profiler, which ends one of ours. NOTE [One profiler]."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def starting(*args: Any, **kwargs: Any) -> Any:
            listener()
            return original(*args, **kwargs)

        return starting

    with patched(*(Patch(torch.autograd.profiler, begin.path.rpartition(".")[2], make) for begin in _BEGINS)):
        yield


def _take_turn(profiler: Any) -> None:
    is_mine = _Turn.running is not None and _Turn.thread == get_ident()

    def begin(is_free: bool) -> None:
        if is_free and not _is_others():
            _Turn.running, _Turn.thread, _Turn.has_begun = profiler, get_ident(), True

    if not _Turn.monitor.when(lambda: _Turn.running is None, begin, lambda: 0 if is_mine else PATIENCE_S):
        raise GradInspectError(
            "Another recording is using torch's profiler, of which a process has one.",
            "Measure when that one has ended.",
        )
    if _Turn.running is not profiler:
        raise GradInspectError(
            "Another thread of the program runs torch's profiler, of which a process has one.",
            "Measure when that one has ended.",
        )


def _is_others() -> bool:
    return bool(_ENABLED.is_there and torch.autograd.profiler._is_profiler_enabled)


def _end_turn(profiler: Any) -> None:
    """Let others begin. It may be repeated."""
    with _Turn.monitor.lock:
        if _Turn.running is profiler:
            _Turn.running = _Turn.thread = None
        _Turn.monitor.notify()


@call_in_children
def _forget() -> None:
    """Forget the profiler of a thread that a forked process does not have."""
    _Turn.monitor = Monitor()
    _Turn.running = _Turn.thread = None
    if _Turn.has_begun:
        _exit_at_once()


def _exit_at_once() -> None:
    """Let this process end after Python has, without destructors. NOTE [Children after a profiler]."""
    library = ctypes.CDLL(None)
    if hasattr(library, "on_exit"):  # of glibc, whose condition variables wait; what is registered last runs first
        library.on_exit(library._exit, None)
        library.__cxa_atexit(library.fflush, None, None)
