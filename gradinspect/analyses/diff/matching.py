"""Match the nodes of two graphs: by module, operator, occurrence and neighborhood.

What comes in: two readings. What goes out: which node of A is which one of B.

NOTE [Equal in both directions]
The same pairs are found whichever graph is A: the two are ordered by their content before they are aligned.
"""

from collections import defaultdict, deque
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

from gradinspect.analyses.diff.alignment import Aligner
from gradinspect.analyses.diff.modules import CallMatcher, paths_in_after
from gradinspect.analyses.diff.reading import CallContent, Reading
from gradinspect.graph import Edge, Graph, Leaf


class Matching(NamedTuple):
    """What is the same in both graphs."""

    calls: dict[int, int]  # module call in A -> in B
    nodes: dict[int, int]  # node in A -> in B


def match_readings(before: Reading, after: Reading) -> Matching:
    """Match two readings. NOTE [Equal in both directions]."""
    if _comes_first(before.graph, after.graph):
        return _match(before, after)
    other = _match(after, before)
    return Matching(_inverted(other.calls), _inverted(other.nodes))


def _inverted(pairs: dict[int, int]) -> dict[int, int]:
    return {mine: theirs for theirs, mine in sorted(pairs.items(), key=lambda pair: pair[1])}


def _comes_first(one: Graph, other: Graph) -> bool:
    """Order two graphs by the first part in which they differ."""
    if len(one.nodes) != len(other.nodes):
        return len(one.nodes) < len(other.nodes)
    for mine, theirs in zip((*one.nodes, *one.modules), (*other.nodes, *other.modules), strict=False):
        if mine != theirs:
            return repr(mine) < repr(theirs)  # not as JSON, which has no lone surrogates
    return len(one.modules) < len(other.modules)


def _match(before: Reading, after: Reading) -> Matching:
    calls = CallMatcher(before, after).match()
    matcher = _NodeMatcher(before, after)
    aligner = Aligner()
    matcher.align(aligner, before.outside, after.outside)
    for mine, theirs in calls.items():
        call, other = before.calls[mine], after.calls[theirs]
        matcher.align(aligner, call.nodes, other.nodes)
        matcher.pair_by_leaves(call, other)
        matcher.pair_last_ones(call.nodes, other.nodes)
    matcher.match_leaves(paths_in_after(before, after, calls))
    matcher.match_neighbors()
    return Matching(calls, matcher.matched)


class _NodeMatcher:
    def __init__(self, before: Reading, after: Reading) -> None:
        self.before, self.after = before, after
        self.matched: dict[int, int] = {}
        self._taken: dict[int, int] = {}  # the inverse of `matched`

    def _add(self, mine: int, theirs: int) -> None:
        self.matched[mine] = theirs
        self._taken[theirs] = mine

    def align(self, aligner: Aligner, mine: Sequence[int], theirs: Sequence[int]) -> None:
        """Match the nodes of one module, in order; then those that are left and equal, wherever they are in it."""
        keys, other_keys = [self.before.keys[n] for n in mine], [self.after.keys[n] for n in theirs]
        for x, y in aligner.align(keys, other_keys):
            self._add(mine[x], theirs[y])
        if len(self.matched) and (len(mine), len(theirs)) != (0, 0):
            self._pair_left_over(mine, theirs)

    def _pair_left_over(self, mine: Sequence[int], theirs: Sequence[int]) -> None:
        waiting: dict[Hashable, deque[int]] = defaultdict(deque)
        for node_id in theirs:
            if node_id not in self._taken:
                waiting[self.after.keys[node_id].whole].append(node_id)
        for node_id in mine if waiting else ():
            if node_id not in self.matched and (found := waiting.get(self.before.keys[node_id].whole)):
                self._add(node_id, found.popleft())

    def pair_by_leaves(self, mine: CallContent, theirs: CallContent) -> None:
        """Pair the nodes of a module that use the same leaf of it, in whatever order, unless they are paired and equal.

        An LSTM multiplies by `weight_ih` first, a GRU by `weight_hh`.
        """
        if any(node_id in self.matched and not self._are_equal(node_id) for node_id in mine.nodes):
            wanted, others = _users_of_leaves(self.before, mine), _users_of_leaves(self.after, theirs)
            for key, node_id in wanted.items():
                if (found := others.get(key)) is not None and self.matched.get(node_id) != found:
                    self._pair_instead(node_id, found)

    def _pair_instead(self, mine: int, theirs: int) -> None:
        """Pair two nodes, and what they were paired with, if no pair of these is equal."""
        user, old = self._taken.get(theirs), self.matched.get(mine)
        if any(node_id in self.matched and self._are_equal(node_id) for node_id in (mine, user) if node_id is not None):
            return
        if old is not None:
            del self._taken[old]
        if user is not None:
            del self.matched[user]
        self._add(mine, theirs)
        if user is not None and old is not None and self._have_same_operator(user, old):
            self._add(user, old)

    def _are_equal(self, mine: int) -> bool:
        return self.before.keys[mine].whole == self.after.keys[self.matched[mine]].whole

    def _have_same_operator(self, mine: int, theirs: int) -> bool:
        return self.before.keys[mine].operator == self.after.keys[theirs].operator

    def pair_last_ones(self, mine: Sequence[int], theirs: Sequence[int]) -> None:
        """Pair the only node of a module that is left in A with the only one in B: its operator and shape changed."""
        left = [node_id for node_id in mine if node_id not in self.matched]
        new = [node_id for node_id in theirs if node_id not in self._taken]
        if len(left) == len(new) == 1:
            self._add(left[0], new[0])

    def match_leaves(self, paths: dict[str, str]) -> None:
        """Match leaves by name; that of a module's parameter follows the module.

        Those of modules that only one graph calls come last: their names may now be those of other modules.
        """
        names: dict[str, deque[int]] = defaultdict(deque)
        for node_id in self.after.leaves:
            leaf = self.after.graph.nodes[node_id].leaf
            if leaf is not None and leaf.name is not None:
                names[leaf.name].append(node_id)
        for node_id, name in self._leaves_of_matched_first(paths):
            if found := names[name_in_after(name, paths)]:
                self._add(node_id, found.popleft())

    def _leaves_of_matched_first(self, paths: dict[str, str]) -> list[tuple[int, str]]:
        leaves = ((node_id, self.before.graph.nodes[node_id].leaf) for node_id in self.before.leaves)
        named = [(node_id, leaf.name) for node_id, leaf in leaves if leaf is not None and leaf.name is not None]
        lost = {call.path for call in self.before.calls}.difference(paths)
        return sorted(named, key=lambda entry: entry[1].rpartition(".")[0] in lost)

    def match_neighbors(self) -> None:
        """Match what is at the same position of nodes that are matched, if it has the same operator."""
        waiting = deque(self._roots())
        waiting.extend(self.matched.items())
        nodes, others = self.before.graph.nodes, self.after.graph.nodes
        while waiting:
            mine, theirs = waiting.popleft()
            for edge, other in zip(nodes[mine].next_edges, others[theirs].next_edges, strict=False):
                if edge is not None and other is not None and self._go_together(edge, other):
                    self._add(edge.next_node, other.next_node)
                    waiting.append((edge.next_node, other.next_node))

    def _roots(self) -> Iterator[tuple[int, int]]:
        for root, other in zip(self.before.graph.roots, self.after.graph.roots, strict=False):
            if self._go_together(Edge(next_node=root.node), Edge(next_node=other.node)):
                self._add(root.node, other.node)
                yield root.node, other.node

    def _go_together(self, edge: Edge, other: Edge) -> bool:
        mine, theirs = edge.next_node, other.next_node
        if mine in self.matched or theirs in self._taken:
            return False
        leaf, other_leaf = self.before.graph.nodes[mine].leaf, self.after.graph.nodes[theirs].leaf
        if leaf is not None and other_leaf is not None and not _may_be_renamed(leaf, other_leaf):
            return False
        return self._have_same_operator(mine, theirs)


def _users_of_leaves(reading: Reading, call: CallContent) -> dict[Hashable, int]:
    """Return the nodes of a module by operator and the leaves that they use; only those that are alone in that.

    A weight that is used transposed counts, too.
    """
    nodes = reading.graph.nodes
    own: dict[int, tuple[str, ...]] = {}
    found: dict[Hashable, list[int]] = defaultdict(list)
    for node_id in call.nodes:  # each after those that it leads to
        targets = [edge.next_node for edge in nodes[node_id].next_edges if edge is not None]
        leaves = (nodes[target].leaf for target in targets)
        own[node_id] = tuple(leaf.name.removeprefix(f"{call.path}.") for leaf in leaves if leaf and leaf.name)
        used = (own[node_id], *(own.get(target, ()) for target in targets))
        if any(used):
            found[reading.keys[node_id].operator, used].append(node_id)
    return {key: same[0] for key, same in found.items() if len(same) == 1}


def _may_be_renamed(leaf: Leaf, other: Leaf) -> bool:
    """Return whether two leaves at the same position may be one: of the same shape, in the same kind of storage."""
    return leaf.info.shape == other.info.shape


def name_in_after(name: str, paths: dict[str, str]) -> str:
    """Return the name in B of a parameter of A, given the paths of its modules."""
    path = name
    while path:
        path, _, _ = path.rpartition(".")
        if path in paths:
            new = paths[path]
            own = name[len(path) + 1 :] if path else name
            return f"{new}.{own}" if new else own
    return name
