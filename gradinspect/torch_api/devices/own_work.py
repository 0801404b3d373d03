"""What we compute while a profiler of ours measures the program: in a range of its own, its memory is ours."""

from threading import Lock
from typing import Any

from gradinspect.torch_api.devices.profiling import OWN_WORK, profiler_range


class OwnWork:
    """Whether our work is marked: only while our own profiler runs, as the program's must not show it."""

    def __init__(self) -> None:
        """Start without a profiler."""
        self._lock = Lock()
        self._num_measuring = 0

    def begin(self) -> None:
        """Mark what we compute, on all threads, while a profiler of ours runs."""
        with self._lock:
            self._num_measuring += 1

    def end(self) -> None:
        """Stop marking: that profiler has stopped."""
        with self._lock:
            self._num_measuring -= 1

    def range(self) -> Any:
        """Return a context manager in which what is allocated is marked as ours; None where nothing is marked."""
        return profiler_range(OWN_WORK) if self._num_measuring else None


own_work = OwnWork()
