"""Dominator tree of a directed acyclic graph: which place every path to another place must pass.

What comes in: predecessors in topological order. What goes out: a tree. Independent of autograd.
"""

from collections.abc import Sequence

ENTRY = -1


class DominatorTree:
    """Each place is under the last place that all paths from an entry to it pass; entries are under `ENTRY`.

    A place stores its parent and one distant ancestor (Myers, 1983), so that ancestors are found in logarithmic time.
    """

    def __init__(self) -> None:
        # The last element is ENTRY, so that -1 can be used as an index.
        self._depths = [0]
        self._parents = [ENTRY]
        self._jumps = [ENTRY]

    def add(self, parent: int) -> None:
        """Add the next place under an earlier one or `ENTRY`."""
        jump = self._jumps[parent]
        is_even = self._depths[parent] - self._depths[jump] == self._depths[jump] - self._depths[self._jumps[jump]]
        for column, value in (
            (self._depths, self._depths[parent] + 1),
            (self._parents, parent),
            (self._jumps, self._jumps[jump] if is_even else parent),
        ):
            column.insert(len(column) - 1, value)

    def parent(self, place: int) -> int:
        """Return the immediate dominator."""
        return self._parents[place]

    def common_ancestor(self, left: int, right: int) -> int:
        """Return the last place that all paths to both pass."""
        left = self._raise_to(left, self._depths[right])
        right = self._raise_to(right, self._depths[left])
        while left != right:
            column = self._parents if self._jumps[left] == self._jumps[right] else self._jumps
            left, right = column[left], column[right]
        return left

    def _raise_to(self, place: int, depth: int) -> int:
        depths, jumps = self._depths, self._jumps
        while depths[place] > depth:
            place = jumps[place] if depths[jumps[place]] >= depth else self._parents[place]
        return place


def dominator_tree(predecessors: Sequence[Sequence[int]]) -> DominatorTree:
    """Build the tree; places without predecessors are the entries.

    In topological order, a place goes under the lowest common ancestor of its predecessors in the tree so far.
    """
    tree = DominatorTree()
    for places in predecessors:
        parent = places[0] if places else ENTRY
        for place in places[1:]:
            if place != parent:
                parent = tree.common_ancestor(parent, place)
        tree.add(parent)
    return tree
