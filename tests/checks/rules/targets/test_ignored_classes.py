"""What is ignored and has to be learned, as findings."""

from typing import Literal

import pytest

from gradinspect.checks.facts.targets import IgnoredClass
from gradinspect.checks.rules.targets.ignored_classes import ignored_findings
from gradinspect.graph import Frame

FIRST = Frame(file="train.py", line=3, code="first")
USED = Frame(file="train.py", line=7, code="used")


@pytest.mark.parametrize(
    ("kind", "text", "remedy"),
    [
        ("item", "padding_idx is 0, and 12 of 100 items that are looked up are 0", "Is item 0 one to be learned?"),
        ("class", "ignore_index is 0, and 12 of 100 labels are 0", "Is class 0 one to be learned?"),
        ("blank", "12 of 100 targets of ctc_loss are 0, which is its blank", "Count the classes from 1"),
    ],
)
def test_the_question_decides(kind: Literal["item", "class", "blank"], text: str, remedy: str) -> None:
    """Except where a target cannot be what it is."""
    (found,) = ignored_findings(IgnoredClass(kind=kind, index=0, num_times=12, num_all=100, num_others=8, used=USED))

    assert found.text.startswith(text)
    assert found.remedy.startswith(remedy)


def test_the_label_of_padding_is_to_be_ignored() -> None:
    """Then nothing has to be asked."""
    fact = IgnoredClass(kind="class", index=0, num_times=70, num_all=100, num_others=4, padding=4, used=USED)

    (found,) = ignored_findings(fact)

    assert "the label of padded tokens is 4, which no other token has" in found.text
    assert found.remedy == "Pass ignore_index=4 to the loss at train.py:7."
