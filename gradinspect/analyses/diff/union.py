"""One graph with the nodes of two, to be drawn: those of B, and in their places those that only A has.

What comes in: two graphs and what differs. What goes out: a graph, and what became of each of its nodes.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from msgspec.structs import replace

from gradinspect.analyses.diff.comparison import match_graphs
from gradinspect.analyses.diff.matching import Matching
from gradinspect.analyses.diff.records import GraphDiff
from gradinspect.graph import Edge, Frame, Graph, ModuleCall, Node, SavedValue

Status: TypeAlias = Literal["", "added", "removed", "changed"]
_LEAF_STATUS: dict[str, Status] = {
    "lost": "removed", "frozen": "removed", "gained": "added", "unfrozen": "added",
    "renamed": "changed", "changed": "changed",
}  # fmt: skip


class UnitedNumbers(NamedTuple):
    """What something is called in each graph; None where it is missing."""

    before: int | None
    after: int | None


class Union(NamedTuple):
    """Both graphs as one."""

    graph: Graph
    statuses: tuple[Status, ...]  # by node
    nodes: tuple[UnitedNumbers, ...]  # by node
    calls: tuple[UnitedNumbers, ...]  # by module call


def unite_graphs(before: Graph, after: Graph, diff: GraphDiff) -> Union:
    """Put the nodes that only A has into B."""
    return _Uniter(before, after, diff, match_graphs(before, after)).union()


class _Uniter:
    def __init__(self, before: Graph, after: Graph, diff: GraphDiff, matching: Matching) -> None:
        self.before, self.after = before, after
        self.matching = matching
        self._inverse = {theirs: mine for mine, theirs in matching.nodes.items()}
        self._added = {number for number in range(len(after.nodes)) if number not in self._inverse}
        self._changed = {change.node_after for change in diff.changed}
        self._leaves = {change.name: _LEAF_STATUS[change.kind] for change in diff.leaf_changes}
        self.order = self._order()  # (whether it is a node of B, its id there)
        self.places = {node: place for place, node in enumerate(self.order)}
        self.calls = self._calls()

    def _order(self) -> list[tuple[bool, int]]:
        """Put each node of A behind the node of B that the one before it in A became; AccumulateGrad nodes are last."""
        behind: dict[int, list[int]] = {}
        anchor = -1
        for number, node in enumerate(self.before.nodes):
            partner = self.matching.nodes.get(number)
            if partner is None:
                behind.setdefault(anchor, []).append(number)
            elif node.kind != "accumulate_grad":
                anchor = partner
        order = [(False, number) for number in behind.get(-1, ())]
        for number in range(len(self.after.nodes)):
            order.append((True, number))
            order += [(False, lost) for lost in behind.get(number, ())]
        return sorted(order, key=lambda one: self._node(one).kind == "accumulate_grad")

    def _node(self, one: tuple[bool, int]) -> Node:
        is_after, number = one
        return (self.after if is_after else self.before).nodes[number]

    def _calls(self) -> dict[int, int]:
        """Number the module calls of A: those that B lacks come after its own. A parent comes before its children."""
        numbers = dict(self.matching.calls)
        count = len(self.after.modules)
        for index in range(len(self.before.modules)):
            if index not in numbers:
                numbers[index] = count
                count += 1
        return numbers

    def union(self) -> Union:
        lost = [index for index in range(len(self.before.modules)) if index not in self.matching.calls]
        graph = replace(
            self.after,
            nodes=tuple(self._moved(*one) for one in self.order),
            roots=tuple(replace(root, node=self.places[True, root.node]) for root in self.after.roots),
            modules=(*self.after.modules, *(self._call(self.before.modules[index]) for index in lost)),
            frames=(*self.after.frames, *(self._frame(index) for index in range(len(self.before.frames)))),
            gradients=None,
            values=(),
        )
        return Union(
            graph,
            tuple(self._status(*one) for one in self.order),
            tuple(UnitedNumbers(self._inverse.get(number), number) if is_after else UnitedNumbers(number, None)
                  for is_after, number in self.order),
            self._both_calls(lost),
        )  # fmt: skip

    def _both_calls(self, lost: Sequence[int]) -> tuple[UnitedNumbers, ...]:
        mine = {theirs: index for index, theirs in self.matching.calls.items()}
        of_after = (UnitedNumbers(mine.get(index), index) for index in range(len(self.after.modules)))
        return *of_after, *(UnitedNumbers(index, None) for index in lost)

    def _call(self, call: ModuleCall) -> ModuleCall:
        return replace(call, parent=None if call.parent is None else self.calls[call.parent])

    def _frame(self, index: int) -> Frame:
        frame = self.before.frames[index]
        caller = None if frame.caller is None else frame.caller + len(self.after.frames)
        return replace(frame, caller=caller)

    def _moved(self, is_after: bool, number: int) -> Node:  # a key of `places`
        place = self.places[is_after, number]
        if is_after:
            node = self.after.nodes[number]
            edges = [self._edge(place, True, edge) for edge in node.next_edges]
            return replace(
                node, next_edges=self._with_lost(number, edges), saved=tuple(self._saved(value) for value in node.saved)
            )
        node = self.before.nodes[number]
        edges = [self._edge(place, False, edge) for edge in node.next_edges]
        module = None if node.module is None else self.calls[node.module]
        frame = None if node.frame is None else node.frame + len(self.after.frames)
        leaf = None if node.leaf is None else replace(node.leaf, storage=None)  # the storages are those of B
        return replace(node, next_edges=tuple(edges), module=module, frame=frame, saved=(), leaf=leaf)

    def _edge(self, place: int, is_after: bool, edge: Edge | None) -> Edge | None:  # as above
        """Lead an edge to where its node is now; one that would lead back, as modules have moved, is left out."""
        if edge is None:
            return None
        partner = None if is_after else self.matching.nodes.get(edge.next_node)
        target = self.places[(is_after, edge.next_node) if partner is None else (True, partner)]
        return replace(edge, next_node=target) if target > place else None

    def _with_lost(self, number: int, edges: list[Edge | None]) -> tuple[Edge | None, ...]:
        """Add the edges that led to nodes which only A has, at their positions if these are free."""
        mine = self._inverse.get(number)
        place = self.places[True, number]
        for position, edge in enumerate(() if mine is None else self.before.nodes[mine].next_edges):
            if edge is None or edge.next_node in self.matching.nodes:
                continue
            found = self._edge(place, False, edge)
            if position < len(edges) and edges[position] is None:
                edges[position] = found
            elif found is not None:
                edges.append(found)
        return tuple(edges)

    def _saved(self, value: SavedValue) -> SavedValue:
        tensor = value.tensor
        if tensor is None or tensor.made_by is None:
            return value
        return replace(value, tensor=replace(tensor, made_by=self.places[True, tensor.made_by]))

    def _status(self, is_after: bool, number: int) -> Status:  # as above
        if not is_after:
            return "removed"
        if number in self._added:
            return "added"
        leaf = self.after.nodes[number].leaf
        if leaf is not None:
            return self._leaves.get(leaf.name or "", "")
        return "changed" if number in self._changed else ""
