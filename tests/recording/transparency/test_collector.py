"""Pauses of Python's garbage collector."""

import gc
from collections.abc import Iterator

import pytest

from gradinspect.recording.transparency.collector import collector_paused


@pytest.fixture(autouse=True)
def _collector() -> Iterator[None]:
    """Leave the collector as it was before a test."""
    was_enabled = gc.isenabled()
    yield
    (gc.enable if was_enabled else gc.disable)()


def test_it_is_paused_until_the_last_pause_ends() -> None:
    """One may be within another."""
    gc.enable()
    seen = []
    with collector_paused():
        seen.append(gc.isenabled())
        with collector_paused():
            seen.append(gc.isenabled())
        seen.append(gc.isenabled())
    seen.append(gc.isenabled())

    assert seen == [False, False, False, True]


def test_a_program_that_has_paused_it_keeps_its_pause() -> None:
    """Whatever is paused by us meanwhile."""
    gc.disable()
    with collector_paused():
        pass

    assert not gc.isenabled()
