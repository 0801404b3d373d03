"""The private part of torch's profiler: our own ranges among its events."""

from typing import Any

from gradinspect.torch_api.probes import private

_RANGE = private("torch._C._profiler._RecordFunctionFast", only_for="--timeline")


def profiler_range(name: str) -> Any:
    """Open a named range in the running profiler. Use it as a context manager."""
    return _RANGE.required()(name)


def require_profiler_ranges() -> None:
    """Check that nodes can be timed.

    Raises:
        GradInspectError: This torch has no such ranges.
    """
    _RANGE.required()
