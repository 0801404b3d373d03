"""Which stretches are copies of one block, against the definition."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from factories import graph, leaf, op
from hypothesis import given
from hypothesis import strategies as st

from gradinspect.analyses.structure.repeats import (
    LEAF,
    MIN_NODES_SPARED,
    NONE,
    Repeat,
    Wiring,
    find_repeats,
    read_wiring,
)
from gradinspect.graph import Graph, Node


def found_in(drawn: Graph) -> list[Repeat]:
    """Find the repeats among the nodes of a graph without modules."""
    wiring = read_wiring(drawn, {})
    return find_repeats(wiring.structure, wiring.begins, range(len(wiring.structure) + 1), wiring)


def chain(names: str, *last: Node) -> Graph:
    """Put ops in a row, one for each letter."""
    size = len(names)
    nodes = [op(name, place + 1 if place + 1 < size or last else None) for place, name in enumerate(names)]
    return graph(*nodes, *last)


def relative(wiring: Wiring, repeat: Repeat, copy: int) -> list[tuple[int, list[tuple[int, int]]]]:
    """Write a copy as seen from where it begins: each node's structure, and its edges that are to a node."""
    begin = repeat.start + repeat.period * copy
    return [
        (
            wiring.structure[place],
            [
                (place + step - begin, input_nr)
                for step, input_nr in zip(wiring.steps[place], wiring.input_nrs[place], strict=True)
                if step >= 0
            ],
        )
        for place in range(begin, begin + repeat.period)
    ]


def are_copies(wiring: Wiring, repeat: Repeat) -> bool:
    """Say whether all copies are equal inside, and all that another follows lead into it in the same way."""
    copies = [relative(wiring, repeat, copy) for copy in range(repeat.times)]
    for number, (one, other) in enumerate(pairwise(copies)):
        inside = repeat.period
        next_one = 2 * repeat.period if number + 2 < repeat.times else inside
        for (structure, edges), (other_structure, other_edges) in zip(one, other, strict=True):
            if structure != other_structure:
                return False
            for (target, input_nr), (other_target, other_nr) in zip(edges, other_edges, strict=True):
                if min(target, other_target) < inside and (target, input_nr) != (other_target, other_nr):
                    return False
                if min(target, other_target) < next_one and target != other_target:
                    return False
    return True


@st.composite
def periodic_graphs(draw: st.DrawFn) -> Graph:
    """Draw a few ops again and again, with edges that often, but not always, lead to the same place in each copy."""
    period, times = draw(st.integers(1, 3)), draw(st.integers(2, 8))
    size = period * times + draw(st.integers(0, 2))
    usual = [draw(st.lists(st.integers(1, 2 * period + 1), min_size=1, max_size=2)) for _ in range(period)]
    nodes = []
    for place in range(size):
        steps = list(usual[place % period])
        if draw(st.integers(0, 7)) == 0:
            steps[0] = draw(st.integers(1, 4))
        number = draw(st.sampled_from([0] * 9 + [1]))
        edges = [(place + step, number) if place + step < size else None for step in steps]
        nodes.append(op("abc"[place % period], *edges))
    return graph(*nodes)


@given(periodic_graphs())
def test_what_is_folded_is_copies_of_one_block(drawn: Graph) -> None:
    """Equal nodes, equal edges inside and into the next copy; they do not overlap, and folding them spares nodes."""
    wiring = read_wiring(drawn, {})
    ends = 0
    for repeat in found_in(drawn):
        assert are_copies(wiring, repeat)
        assert repeat.start >= ends
        ends = repeat.start + repeat.period * repeat.times
        spared = (repeat.times - 1) * repeat.period
        assert spared >= MIN_NODES_SPARED
    assert ends <= len(wiring.structure)


@pytest.mark.parametrize(
    ("names", "repeats"),
    [
        ("x" + "ab" * 4 + "y", [Repeat(1, 2, 4)]),
        ("x" + "a" * 5 + "y", [Repeat(1, 1, 5)]),
        ("x" + "a" * 4 + "y", []),  # three nodes spared
        ("x" + "ab" * 3 + "y", [Repeat(1, 2, 3)]),  # four nodes spared
        ("x" + "abc" * 2 + "y", []),  # three nodes spared
        ("x" + "abcd" * 2 + "y", [Repeat(1, 4, 2)]),  # four nodes spared
        ("a" * 5 + "b" + "c" * 6 + "d", [Repeat(0, 1, 5), Repeat(6, 1, 6)]),
        ("xyz", []),
    ],
)
def test_what_is_worth_folding(names: str, repeats: list[Repeat]) -> None:
    """Four nodes spared, also where there are two."""
    assert found_in(chain(names)) == repeats


def blocks(num_before: int, count: int, num_after: int = 0) -> Graph:
    """Put blocks in a row, each a fork and its meeting place, with the last and first ops of others around them."""
    nodes = []
    for place in range(-num_before, 3 * count + num_after):
        at = place + num_before
        nodes.append((op("Fork", at + 1, at + 2), op("Body", at + 1), op("Meet", at + 1))[place % 3])
    return graph(*nodes, op("Last", None), op("Last", None))


@pytest.mark.parametrize("num_before", [0, 1, 2])
def test_copies_begin_where_the_fewest_edges_cross(num_before: int) -> None:
    """A block is from its fork to where both ways meet, wherever in a block the stretch of equal ops begins."""
    assert found_in(blocks(num_before, 5)) == [Repeat(num_before, 3, 5)]


def test_more_copies_are_better_than_fewer_edges_across() -> None:
    """A block more is folded, even if the copies then begin in the middle of what a reader calls a block."""
    assert found_in(blocks(2, 4, 1)) == [Repeat(0, 3, 5)]
    assert found_in(blocks(1, 4, 2)) == [Repeat(0, 3, 5)]


def test_a_copy_that_leaves_in_another_way_is_the_last() -> None:
    """What follows is folded on its own."""
    nodes = [op("ab"[place % 2], place + 1, (place + 2) if place % 2 == 0 else None) for place in range(24)]
    nodes[10] = op("a", 11, 13)  # where the others lead into the next copy's first
    drawn = graph(*nodes, op("end", None), op("end", None))

    assert found_in(drawn) == [Repeat(0, 2, 6), Repeat(12, 2, 6)]


def test_where_edges_beyond_the_next_copy_lead_does_not_matter() -> None:
    """A block may be read by any of those far behind it."""
    nodes = [op("ab"[place % 2], place + 1, (place + 4 + place % 3) if place % 2 == 0 else None) for place in range(24)]
    drawn = graph(*nodes, *(op(f"end{number}") for number in range(6)))

    assert found_in(drawn) == [Repeat(0, 2, 12)]


@pytest.mark.parametrize("odd", [op("a", 11, 11), op("a", (11, 1), 12)], ids=["target", "input"])
def test_a_copy_that_is_wired_in_another_way_inside_is_in_none(odd: Node) -> None:
    """The parts on both sides are folded each, if they are long enough."""
    nodes = [op("ab"[place % 2], place + 1, (place + 2) if place % 2 == 0 else None) for place in range(24)]
    nodes[10] = odd
    drawn = graph(*nodes, op("end", None), op("end", None))

    assert found_in(drawn) == [Repeat(0, 2, 5), Repeat(12, 2, 6)]


def same(numbers: Sequence[int]) -> list[int]:
    """Number what is equal in the order in which it comes."""
    order = list(dict.fromkeys(numbers))
    return [order.index(number) for number in numbers]


def test_the_wiring_of_a_graph() -> None:
    """Positions, steps and inputs; leaves of equal shape, and edges to nothing, are part of the structure."""
    drawn = graph(
        op("a", 1, 5), op("a", (2, 1), 6), op("a", 3, 7), op("a", 4, None), op("a", None, None),
        leaf("p", 3), leaf("q", 3), leaf("r", 4),
    )  # fmt: skip
    wiring = read_wiring(drawn, {})

    assert wiring.positions == {number: number for number in range(5)}
    assert same(wiring.structure) == [0, 0, 1, 2, 3]
    assert same(wiring.begins) == [0, 0, 1, 2, 2]
    assert same([look.unsized for look in wiring.looks]) == [0, 0, 0, 1, 2]
    assert same([look.unsized_begins for look in wiring.looks]) == [0, 0, 0, 1, 1]
    assert wiring.steps == [(1, LEAF), (1, LEAF), (1, LEAF), (1, NONE), (NONE, NONE)]
    assert wiring.input_nrs == [(0, 0), (1, 0), (0, 0), (0, 0), (0, 0)]
