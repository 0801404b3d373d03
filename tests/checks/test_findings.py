"""How findings are chosen: by code, once each, and where one call is not enough."""

from msgspec.structs import replace

from gradinspect.checks.findings import Finding, place_of, repeated, selected
from gradinspect.graph import Frame

BACKWARD = Frame(file="train.py", line=9, code="loss.backward()")
ONCE = Finding(code="GI101", title="", text="", places=place_of("made", BACKWARD), remedy="")
EACH_TIME = replace(ONCE, code="GI601")


def test_what_may_happen_by_chance_counts_if_every_call_of_the_line_shows_it() -> None:
    """A call on another line says nothing about it, and other codes count at once."""
    elsewhere = replace(BACKWARD, line=20)

    def found(*calls: tuple[Frame | None, list[Finding]]) -> list[Finding]:
        return list(repeated(calls, {"GI601"}))

    assert found((BACKWARD, [EACH_TIME]), (BACKWARD, [])) == []
    assert found((BACKWARD, [EACH_TIME]), (elsewhere, [])) == [EACH_TIME]
    assert found((BACKWARD, [EACH_TIME]), (BACKWARD, [EACH_TIME])) == [EACH_TIME] * 2
    assert found((BACKWARD, [ONCE]), (BACKWARD, [])) == [ONCE]
    assert found((None, [EACH_TIME])) == [EACH_TIME]


def test_codes_choose_and_the_same_lines_count_once() -> None:
    """A code also stands for all that begin with it."""
    assert selected([ONCE, ONCE, EACH_TIME], (), ()) == (ONCE, EACH_TIME)
    assert selected([ONCE, EACH_TIME], ("GI6",), ()) == (EACH_TIME,)
    assert selected([ONCE, EACH_TIME], (), ("GI6",)) == (ONCE,)
