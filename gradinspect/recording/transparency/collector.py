"""Pause Python's garbage collector while our own code makes many records, on any number of threads.

The collector would traverse a growing record again and again. It is one for all threads, so the last one that needs the
pause ends it.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from gradinspect.torch_api.patching.forks import InOurState, lock_of_process


class _Pauses:
    """The pauses that are not over yet."""

    lock = lock_of_process()
    number = 0
    was_enabled = False


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the garbage collector, unless the program has."""
    with InOurState():
        with _Pauses.lock:
            if not _Pauses.number:
                _Pauses.was_enabled = gc.isenabled()
                gc.disable()
            _Pauses.number += 1
        try:
            yield
        finally:
            with _Pauses.lock:
                _Pauses.number -= 1
                if not _Pauses.number and _Pauses.was_enabled:
                    gc.enable()
