"""Orders that were drawn apart, as findings."""

from gradinspect.checks.facts.targets import TwoOrders
from gradinspect.checks.rules.targets.two_orders import order_findings
from gradinspect.graph import Frame

FIRST = Frame(file="train.py", line=3, code="first")
USED = Frame(file="train.py", line=7, code="used")


def test_both_lines_are_named_where_there_are_two() -> None:
    """One permutation is drawn instead."""
    (one,) = order_findings(TwoOrders(length=20, num_calls=4, first=FIRST, second=FIRST, used=USED))
    (two,) = order_findings(TwoOrders(length=20, num_calls=4, first=FIRST, second=USED, used=None))

    assert one.remedy == "Draw one permutation at train.py:3, and index inputs and targets with it."
    assert "train.py:3 and train.py:7" in two.remedy
    assert [place.line for place in one.places] == [3, 7]


def test_two_loaders_are_replaced_by_one() -> None:
    """Of pairs."""
    (one,) = order_findings(TwoOrders(length=20, num_calls=4, first=FIRST, second=USED, are_loaders=True))

    assert one.remedy.startswith("Let one loader draw the pairs")
