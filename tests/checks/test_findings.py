"""How findings are chosen: by code, and once each."""

from msgspec.structs import replace

from gradinspect.checks.findings import Finding, place_of, selected
from gradinspect.graph import Frame

BACKWARD = Frame(file="train.py", line=9, code="loss.backward()")
ONCE = Finding(code="GI101", title="", text="", places=place_of("made", BACKWARD), remedy="")
EACH_TIME = replace(ONCE, code="GI601")


def test_codes_choose_and_the_same_lines_count_once() -> None:
    """A code also stands for all that begin with it; what comes first stays first, also when it is seen again."""
    assert selected([ONCE, EACH_TIME, ONCE], (), ()) == (ONCE, EACH_TIME)
    assert selected([ONCE, EACH_TIME], ("GI6",), ()) == (EACH_TIME,)
    assert selected([ONCE, EACH_TIME], (), ("GI6",)) == (ONCE,)
