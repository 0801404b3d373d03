"""The identities of the nodes of one graph, as runs."""

from hypothesis import given
from hypothesis import strategies as st

from gradinspect.analyses.selection.node_numbers import NodeNumbers


@given(st.lists(st.integers(0, 40) | st.integers(2**63, 2**63 + 3)), st.sets(st.integers(0, 40)))
def test_it_is_the_set_of_its_numbers(numbers: list[int], others: set[int]) -> None:
    """Whatever the order and however often: it has the same members, order aside, and meets the same other sets."""
    known, plain = NodeNumbers(numbers), set(numbers)

    assert list(known) == sorted(plain)
    assert len(known) == len(plain)
    assert [number for number in range(-1, 43) if number in known] == [n for n in range(-1, 43) if n in plain]
    assert others.isdisjoint(known) is plain.isdisjoint(others)
    assert others & known == others & plain


def test_a_node_without_an_identity_is_not_in_it() -> None:
    """None, as the record of a node may have, is no member."""
    assert None not in NodeNumbers([0])


def test_numbers_in_a_row_take_no_memory() -> None:
    """A graph of a million nodes is one run of numbers."""
    assert len(NodeNumbers(range(10**6))._firsts) == 1
