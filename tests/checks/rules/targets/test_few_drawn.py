"""Samplers with too few weights, as findings."""

import pytest

from gradinspect.checks.facts.targets import FewDrawn
from gradinspect.checks.rules.targets.few_drawn import drawn_findings
from gradinspect.graph import Frame

SAMPLER = Frame(file="train.py", line=3, code="sampler = ...")


@pytest.mark.parametrize(
    ("examples", "words"), [(1200, "there are 1,200 examples"), (None, "a batch has more examples")]
)
def test_what_is_known_of_the_examples_is_said(examples: int | None, words: str) -> None:
    """The length of a dataset of the program's own is not asked for."""
    (found,) = drawn_findings(FewDrawn(num_weights=3, num_examples=examples, sampler=SAMPLER))

    assert found.text == (
        f"The sampler has 3 weights, and {words}: it draws the first 3 of them again and again, and never the others."
    )
    assert found.remedy.startswith("At train.py:3, give the sampler a weight for each example")
