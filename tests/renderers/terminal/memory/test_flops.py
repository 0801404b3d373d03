"""Floating point operations on a terminal."""

import pytest

from gradinspect.analyses.memory.flops import CountedFlops
from gradinspect.renderers.terminal.memory.flops import MAX_CLASSES, FlopsPage


@pytest.mark.parametrize(("number", "more"), [(1, ""), (MAX_CLASSES, ""), (MAX_CLASSES + 2, " and 2 more classes")])
def test_classes_without_a_count_are_named(number: int, more: str) -> None:
    """The first of many, and how many there are besides."""
    counted = CountedFlops(rows=(), unknown={f"F{place}": 1 for place in range(number)})
    *_, note = " ".join(line.plain for line in FlopsPage(width=200).table(counted, (), None)).partition("unknown: ")
    named = ", ".join(f"F{place}" for place in range(min(number, MAX_CLASSES)))

    assert note == f"{number} node{'s' * (number > 1)} ({named}{more}); torch has no formula for them"
