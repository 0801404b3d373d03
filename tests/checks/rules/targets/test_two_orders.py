"""Orders that were drawn apart, as findings."""

from gradinspect.checks.facts.targets import OneOrder, TwoOrders
from gradinspect.checks.rules.targets.two_orders import one_order_findings, order_findings
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


def test_inputs_that_were_reordered_alone_are_named() -> None:
    """A sort can also be undone."""
    (drawn,) = one_order_findings(OneOrder(length=20, num_calls=4, made=FIRST, taken=FIRST, used=USED))
    (by_size,) = one_order_findings(OneOrder(length=20, num_calls=4, is_sorted=True, made=FIRST, taken=USED))

    assert "train.py:3 takes the inputs by a permutation of 20" in drawn.text
    assert drawn.remedy == "Index the targets with the same order as train.py:3."
    assert [place.line for place in drawn.places] == [3, 7]
    assert "by the order of a sort of 20" in by_size.text
    assert by_size.remedy.endswith("train.py:7, or put the outputs back with its argsort().")
    assert [place.line for place in by_size.places] == [3, 7]
