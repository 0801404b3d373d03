"""The dominator tree, against its definition."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradinspect.analyses.structure.dominators import ENTRY, dominator_tree


@st.composite
def predecessor_lists(draw: st.DrawFn) -> list[list[int]]:
    """Draw an acyclic graph as predecessors, several entries included."""
    size = draw(st.integers(1, 12))
    return [draw(st.lists(st.integers(0, place - 1), max_size=3)) if place else [] for place in range(size)]


def reached_without(predecessors: list[list[int]], removed: int) -> set[int]:
    """Find what the entries reach when one place is taken away."""
    reached: set[int] = set()
    for place, sources in enumerate(predecessors):
        if place != removed and (not sources or any(source in reached for source in sources)):
            reached.add(place)
    return reached


@given(predecessor_lists())
def test_a_place_is_under_all_that_every_path_to_it_crosses(predecessors: list[list[int]]) -> None:
    """The ancestors of a place in the tree are exactly the places without which it is not reached."""
    tree = dominator_tree(predecessors)
    for place in range(len(predecessors)):
        ancestors = set()
        parent = tree.parent(place)
        while parent != ENTRY:
            ancestors.add(parent)
            parent = tree.parent(parent)
        cutting = {other for other in range(place) if place not in reached_without(predecessors, other)}

        assert cutting == ancestors


class Counted(list[int]):
    """Counts how often it is read."""

    num_reads = 0

    def __getitem__(self, place: Any) -> Any:
        """Count one more."""
        Counted.num_reads += 1
        return super().__getitem__(place)


@pytest.mark.parametrize("size", [1000, 1023, 1024, 3000])
def test_a_distant_ancestor_is_found_in_few_steps(size: int) -> None:
    """In a chain of thousands a pair of edges from one node is not a walk over all of it."""
    tree = dominator_tree([[place - 1] if place else [] for place in range(size)])
    tree._depths, tree._parents, tree._jumps = (Counted(it) for it in (tree._depths, tree._parents, tree._jumps))
    Counted.num_reads = 0

    assert [tree.common_ancestor(size - 1, place) for place in (0, 1, size // 3)] == [0, 1, size // 3]
    assert Counted.num_reads < 300


def test_the_common_ancestor_of_two_places() -> None:
    """Of two branches it is the fork; of a place and what it is under, the latter; without any, the entry."""
    tree = dominator_tree([[], [0], [1], [2], [1], [4], [], [3, 5], [7, 6], [8]])

    assert [tree.parent(place) for place in range(10)] == [ENTRY, 0, 1, 2, 1, 4, ENTRY, 1, ENTRY, 8]
    assert [tree.common_ancestor(left, right) for left, right in ((3, 5), (5, 3), (2, 3), (3, 2), (3, 3), (9, 3))] == [
        1, 1, 2, 2, 3, ENTRY,
    ]  # fmt: skip
