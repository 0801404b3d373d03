"""List a graph as rows, in the direction gradients flow: the order shared by tree, pager and explorer.

What comes in: a graph, its folding, and which scopes are expanded. What goes out: rows as data, generated lazily; no
text, no width. Each node has one row, or is in one collapsed scope, or in a later copy of a repeat. An AccumulateGrad
node is listed at each use. See NOTE [Trunk and branches] in `flow`.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from gradinspect.analyses.structure.flow import Flow, edges_out, last_of_chain
from gradinspect.analyses.structure.folding import Item, Scope, later_copies, node_ids
from gradinspect.analyses.structure.outline_rows import Guide, Link, Row
from gradinspect.graph import Edge, Graph, argument_name

IsOpen: TypeAlias = Callable[[Scope, int], bool]  # a scope, and how many expanded scopes are around it
CopyOf: TypeAlias = Callable[[Scope, int], int | None]  # which copy of an expanded repeat to list; None for the first
FlowMaker: TypeAlias = Callable[[Graph, Sequence[Item], range], Flow]

_LinksTo: TypeAlias = dict[int, tuple[Link, ...]]  # by place in the flow

NO_CONTINUATION = range(0)
MAX_NODES_IN_A_ROW = 3


class OutlineBuilder(NamedTuple):
    """What to list, and how to order it."""

    graph: Graph
    is_open: IsOpen
    copy_of: CopyOf = lambda _scope, _level: None
    make_flow: FlowMaker = Flow  # the explorer caches flows here


def outline(graph: Graph, scope: Scope, is_open: IsOpen) -> Iterator[Row]:
    """Yield the rows of a folded graph.

    Args:
        graph: The graph.
        scope: Its folding, from `fold_graph`.
        is_open: Whether to expand a scope, given how many expanded scopes are around it.
    """
    return build_rows(OutlineBuilder(graph, is_open), scope)


def build_rows(builder: OutlineBuilder, scope: Scope) -> Iterator[Row]:
    """Yield the rows of a folded graph as the builder says."""
    graph = builder.graph
    roots = frozenset(root.node for root in graph.roots)
    for leaf in sorted(root for root in roots if graph.nodes[root].kind == "accumulate_grad"):
        yield Row(kind="leaf", targets=(Link(edge=Edge(next_node=leaf)),))
    flow = builder.make_flow(graph, scope.items, NO_CONTINUATION)
    waiting: list[Row | _Spot] = [_Spot(flow, entry, (), (), 0) for entry in reversed(flow.entries())]
    while waiting:
        current = waiting.pop()
        if isinstance(current, Row):
            yield current
        else:
            waiting.extend(reversed(_ItemRows(builder, current, roots).rows()))


def body_of(scope: Scope, copy: int = 0) -> tuple[Item, ...]:
    """Return the items to list inside a scope; a repeat of single module calls lists the contents of one call."""
    items = scope.copies[copy - 1] if copy else scope.items
    first = items[0]
    is_lone_call = scope.kind == "repeat" and len(items) == 1 and isinstance(first, Scope)
    return first.items if is_lone_call and isinstance(first, Scope) and first.kind == "module" else items


def leaves_of(graph: Graph, item: Item) -> set[int]:
    """Return the AccumulateGrad nodes that an item's gradients go to."""
    return {
        edge.next_node
        for node_id in node_ids(item)
        for edge in graph.nodes[node_id].next_edges
        if edge is not None and graph.nodes[edge.next_node].kind == "accumulate_grad"
    }


def leaf_uses(graph: Graph) -> Counter[int]:
    """Count the edges into each AccumulateGrad node."""
    return Counter(
        edge.next_node
        for node in graph.nodes
        for edge in node.next_edges
        if edge is not None and graph.nodes[edge.next_node].kind == "accumulate_grad"
    )


class _Spot(NamedTuple):
    """An item to list next, and the indentation of its own row and of the rows below it."""

    flow: Flow
    place: int
    guides: tuple[Guide, ...]
    guides_below: tuple[Guide, ...]
    level: int
    links: tuple[Link, ...] = ()


class _ItemRows:
    """Lists one item: its row, its contents, its branches and its trunk."""

    def __init__(self, builder: OutlineBuilder, spot: _Spot, roots: frozenset[int]) -> None:
        self.builder = builder
        self.graph = builder.graph
        self.roots = roots
        self.spot = spot
        self.item, self.call = unwrapped(spot.flow.items[spot.place])
        self.listed = spot.flow.listed_under(spot.place)
        self.places = {*self.listed.branches, *self.listed.trunks}
        self.is_open = isinstance(self.item, Scope) and builder.is_open(self.item, spot.level)

    def rows(self) -> list[Row | _Spot]:
        """Return the item's row, and the rows and items below it in order."""
        if isinstance(self.item, Scope):
            return self._scope_rows(self.item)
        chain, end = self._chain(self.item)
        if end is not None:
            return [self._row(kind="node", nodes=chain, targets=(end,), ends_in_leaf=True, call=self.call)]
        return self._with_branches(self.item, self._links(self.item))

    def _scope_rows(self, scope: Scope) -> list[Row | _Spot]:
        if not self.is_open:
            last = last_of_chain(scope)
            return self._with_branches(
                scope, _distinct_targets(self.graph, scope) if last is None else self._links(last)
            )
        copy = self.builder.copy_of(scope, self.spot.level) if scope.copies else None
        inside = self.builder.make_flow(self.graph, body_of(scope, copy or 0), self._continuation(scope, copy or 0))
        guides: tuple[Guide, ...] = (*self.spot.guides_below, "scope")
        below = [_Spot(inside, entry, guides, guides, self.spot.level + 1) for entry in inside.entries()]
        return [
            self._row(kind="scope", scope=scope, is_open=True, copy=copy),
            *below,
            *self._branch_rows({}),
            *self._trunk_rows({}),
        ]

    def _with_branches(self, item: Item, links: Sequence[Link]) -> list[Row | _Spot]:
        ends = [link for link in links if self._is_listed_elsewhere(link)]
        is_end = not self.listed.branches and not self.listed.trunks
        inline = tuple(ends) if is_end and (len(ends) == 1 or isinstance(item, Scope)) else ()
        row = (
            self._row(kind="scope", scope=item, targets=inline)
            if isinstance(item, Scope)
            else self._row(
                kind="node", nodes=(item,), targets=inline, ends_in_leaf=self._has_leaf(inline), call=self.call
            )
        )
        rows = [] if inline or not ends else self._end_rows(item, ends)
        links_to = self._by_place(links)
        return [row, *self._branch_rows(links_to, rows), *self._trunk_rows(links_to)]

    def _has_leaf(self, links: Sequence[Link]) -> bool:
        return any(self.graph.nodes[link.edge.next_node].kind == "accumulate_grad" for link in links)

    def _end_rows(self, item: Item, ends: list[Link]) -> list[Row]:
        if isinstance(item, Scope):
            return [Row(kind="reference", targets=tuple(ends))]
        return [
            Row(kind="leaf" if self._has_leaf((link,)) else "reference", links=(link,), targets=(link,))
            for link in ends
        ]

    def _branch_rows(self, links: _LinksTo, ends: Sequence[Row] = ()) -> list[Row | _Spot]:
        """Return the rows beside the item: the given ones first, then its branches."""
        spot = self.spot
        continues = bool(self._trunk_rows(links))
        branches: list[Row | int] = [*ends, *self.listed.branches]
        rows: list[Row | _Spot] = []
        for number, branch in enumerate(branches, start=1):
            is_last = number == len(branches) and not continues
            guides: tuple[Guide, ...] = (*spot.guides_below, "last_branch" if is_last else "branch")
            if isinstance(branch, Row):
                rows.append(msgspec.structs.replace(branch, guides=guides))
            else:
                under: tuple[Guide, ...] = (*spot.guides_below, "gap" if is_last else "line")
                rows.append(_Spot(spot.flow, branch, guides, under, spot.level, links.get(branch, ())))
        return rows

    def _trunk_rows(self, links: _LinksTo) -> list[Row | _Spot]:
        """Return the rows below the item, in its own column.

        The continuation follows directly, unless branches are in between: then a reference leads to it.
        """
        spot, below = self.spot, self.spot.guides_below
        continuation = len(spot.flow.items)
        rows: list[Row | _Spot] = [
            _Spot(spot.flow, trunk, below, below, spot.level, links.get(trunk, ()))
            for trunk in self.listed.trunks
            if trunk != continuation
        ]
        out = links.get(continuation, ())
        has_rows_between = rows or any(not spot.flow.is_view_of_leaf(branch) for branch in self.listed.branches)
        if continuation in self.listed.trunks and out and has_rows_between:
            rows.append(Row(kind="reference", guides=below, links=out, targets=out[:1]))
        return rows

    def _by_place(self, links: Sequence[Link]) -> _LinksTo:
        """Group links by the place they lead to, as far as it is listed under this item."""
        groups: dict[int, list[Link]] = {}
        for link in links:
            place = self.spot.flow.place_of(link.edge.next_node)
            if place is not None and place in self.places:
                groups.setdefault(place, []).append(link)
        return {place: tuple(group) for place, group in groups.items()}

    def _is_listed_elsewhere(self, link: Link) -> bool:
        place = self.spot.flow.place_of(link.edge.next_node)
        return place is None or place not in self.places

    def _continuation(self, scope: Scope, copy: int) -> range:
        """Return the ids that continue below the scope: those of the copies that are not listed."""
        following = later_copies(scope, copy)
        if following:
            return following
        if self.listed.branches or not self.listed.trunks:
            return NO_CONTINUATION
        flow, trunk = self.spot.flow, self.listed.trunks[0]
        return flow.continuation if trunk == len(flow.items) else node_ids(flow.items[trunk])

    def _links(self, node_id: int) -> list[Link]:
        node = self.graph.nodes[node_id]
        return [
            Link(argument=argument_name(self.graph, node, position), position=position, edge=edge)
            for position, edge in enumerate(node.next_edges)
            if edge is not None
        ]

    def _chain(self, node_id: int) -> tuple[tuple[int, ...], Link | None]:
        """Follow a node down to a leaf while nothing branches off and one row can hold everything but names."""
        flow = self.spot.flow
        chain, listed = [node_id], self.listed
        while True:
            links = self._links(chain[-1])
            if len(links) == 1 and self._has_leaf(links):
                return tuple(chain), links[0]
            if len(links) != 1 or not listed.trunks or listed.trunks[0] == len(flow.items):
                return (node_id,), None
            item = flow.items[listed.trunks[0]]
            if not isinstance(item, int) or len(chain) == MAX_NODES_IN_A_ROW or not self._is_plain(item, node_id):
                return (node_id,), None
            chain.append(item)
            listed = flow.listed_under(listed.trunks[0])

    def _is_plain(self, node_id: int, first: int) -> bool:
        node, before = self.graph.nodes[node_id], self.graph.nodes[first]
        has_marks = node.hooks or node.function or any(value.tensor or value.status for value in node.saved)
        return not has_marks and node.frame in (None, before.frame) and node_id not in self.roots

    def _row(self, **fields: object) -> Row:
        return Row(guides=self.spot.guides, links=self.spot.links, **fields)  # type: ignore[arg-type]


def unwrapped(item: Item) -> tuple[Item, int | None]:
    """Return the node of a module call with a single node, and the call."""
    if isinstance(item, Scope) and item.kind == "module" and isinstance(item.items[0], int) and item.num_nodes == 1:
        return item.items[0], item.module
    return item, None


def _distinct_targets(graph: Graph, scope: Scope) -> list[Link]:
    """Return one link for each node outside a scope that its gradients go to."""
    targets = sorted({edge.next_node for edge in edges_out(graph, scope)})
    return [Link(edge=Edge(next_node=target)) for target in targets]
