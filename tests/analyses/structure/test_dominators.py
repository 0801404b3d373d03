"""The dominator tree, against its definition."""

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
