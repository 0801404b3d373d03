"""Pause Python's garbage collector while our own code makes many records, on any number of threads.

The collector would traverse a growing record again and again. It is one for all threads, so the last one that needs the
pause ends it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from gc import disable, enable, isenabled

from gradinspect.torch_api.patching.forks import in_our_state, lock_of_process


class _Pauses:
    """The pauses that are not over yet."""

    lock = lock_of_process()
    places: set[object] = set()  # noqa: RUF012  # of the process
    was_enabled = False


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the garbage collector, unless the program has."""
    place = object()
    with in_our_state():
        try:
            _pause(place)
            yield
        finally:
            try:
                _go_on(place)
            except BaseException:  # NOTE [Handlers that raise]
                _go_on(place)
                raise


def _pause(place: object) -> None:
    with _Pauses.lock:
        if not _Pauses.places:
            _Pauses.was_enabled = isenabled()
            _Pauses.places.add(place)
            disable()
        _Pauses.places.add(place)


def _go_on(place: object) -> None:
    """End one pause. It may be repeated."""
    with _Pauses.lock:
        _Pauses.places.discard(place)
        if not _Pauses.places and _Pauses.was_enabled:
            enable()
