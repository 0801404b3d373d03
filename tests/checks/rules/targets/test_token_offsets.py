"""Tokens at another distance, as findings."""

import pytest

from gradinspect.checks.facts.targets import TokenOffset
from gradinspect.checks.rules.targets.token_offsets import offset_findings
from gradinspect.graph import Frame

FIRST = Frame(file="train.py", line=3, code="first")
USED = Frame(file="train.py", line=7, code="used")


@pytest.mark.parametrize(
    ("distance", "text", "remedy"),
    [
        (2, "the token after the next one, as the labels are shifted 2 times", "Shift once: leave out the shift at"),
        (3, "the token 3 places ahead", "Shift once"),
        (0, "the very token that the model is given at its place", "At train.py:7, compare scores[:, :-1]"),
        (-1, "a token that the model has been given already", "At train.py:3, leave out the last score"),
    ],
)
def test_what_is_done_depends_on_the_distance(distance: int, text: str, remedy: str) -> None:
    """The line that cuts the scores counts where it cuts the wrong end."""
    (found,) = offset_findings(TokenOffset(distance=distance, num_calls=4, looked_up=USED, cut=FIRST, used=USED))

    assert text in found.text
    assert found.remedy.startswith(remedy)
    assert [place.role for place in found.places] == (["loss"] if distance > 0 else ["cut", "loss"])
