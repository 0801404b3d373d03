"""Formulas and the code around a line, for the page."""

from collections.abc import Sequence

import pytest
from factories import graph, op

from gradinspect.analyses.explain.explanation import Explanation, InputGradient
from gradinspect.graph import Frame
from gradinspect.renderers.facts import CodeAround, PageFacts, formula_lines, page_facts

SOURCE = ("def loss(w):", "    if w:", "\t\ty = w * 2", "    return y", "print(1)")
ADD = Explanation(
    name="AddBackward0",
    signature="add(Tensor self, Tensor other) -> Tensor",
    gradients=(
        InputGradient(place="0", argument="self", formula="grad"),
        InputGradient(place="1", argument="other", formula="grad"),
    ),
)


def explain(name: str) -> Explanation | None:
    """Know one class."""
    return ADD if name == ADD.name else None


def facts_of(line: int, code: str, source: Sequence[str] | None = SOURCE) -> PageFacts:
    """Look up a node that a line has made."""
    record = graph(
        op("AddBackward0", 1, frame=0), op("OddBackward0"), frames=(Frame(file="train.py", line=line, code=code),)
    )
    return page_facts(record, explain, lambda file: source if file == "train.py" else None)


def test_equal_formulas_are_told_once() -> None:
    """The signature, then each formula with the inputs it is for; nothing of a class that nobody knows."""
    lines = ("add(Tensor self, Tensor other) -> Tensor", "self, other: grad")

    assert tuple(formula_lines(ADD)) == lines
    assert facts_of(1, "def loss(w):").formulas == (("AddBackward0", lines),)


def test_the_code_around_a_line() -> None:
    """Two lines to each side, without what all are indented by; tabs are four letters."""
    found = facts_of(3, "y = w * 2").around

    assert found == ((0, CodeAround(before=SOURCE[:2], line="        y = w * 2", after=SOURCE[3:])),)
    assert facts_of(1, "def loss(w):").around[0][1].before == ()
    assert facts_of(5, "print(1)").around[0][1].after == ()


@pytest.mark.parametrize(("line", "source"), [(3, ()), (3, None), (9, SOURCE), (0, SOURCE), (-1, SOURCE), (2, SOURCE)])
def test_a_file_that_is_another_now_shows_nothing(line: int, source: Sequence[str] | None) -> None:
    """Nor does one that is not there, or that is shorter than the record says."""
    assert facts_of(line, "y = w * 2", source).around == ()
