"""Tell a graph as a list of rows, in the direction gradients flow: the one order that tree, pager and explorer share.

What comes in: a graph, its folding, and which scopes are open. What goes out: rows as data, lazily; no text, no width.
Each node has one row, or lies in one closed scope, or is a later copy of a repeat. An AccumulateGrad node is told at
each use. See NOTE [Trunk and branches] in `flow`.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from gradinspect.analyses.structure.flow import Flow, edges_out, last_of_chain
from gradinspect.analyses.structure.folding import Item, Scope, later_copies, node_ids
from gradinspect.analyses.structure.outline_rows import Guide, Link, Row
from gradinspect.graph import Edge, Graph, argument_name

IsOpen: TypeAlias = Callable[[Scope, int], bool]  # a scope, and how many open scopes it is in
CopyOf: TypeAlias = Callable[[Scope, int], int | None]  # which copy of an open repeat to tell; None for the first
FlowMaker: TypeAlias = Callable[[Graph, Sequence[Item], range], Flow]

_LinksTo: TypeAlias = dict[int, tuple[Link, ...]]  # by place in the flow

NO_WAY_OUT = range(0)
MAX_NODES_IN_A_ROW = 3


class OutlineBuilder(NamedTuple):
    """What to tell, and how to find the order of it."""

    graph: Graph
    is_open: IsOpen
    copy_of: CopyOf = lambda _scope, _level: None
    make_flow: FlowMaker = Flow  # a reader who opens and closes keeps those that were made


def outline(graph: Graph, scope: Scope, is_open: IsOpen) -> Iterator[Row]:
    """Yield the rows of a folded graph.

    Args:
        graph: The graph.
        scope: Its folding, from `fold_graph`.
        is_open: Whether to tell what is inside a scope, given how many open scopes it is in.
    """
    return tell(OutlineBuilder(graph, is_open), scope)


def tell(telling: OutlineBuilder, scope: Scope) -> Iterator[Row]:
    """Yield the rows of a folded graph, as the reader chose."""
    graph = telling.graph
    roots = frozenset(root.node for root in graph.roots)
    for leaf in sorted(root for root in roots if graph.nodes[root].kind == "accumulate_grad"):
        yield Row(kind="leaf", way_on=(Link(edge=Edge(next_node=leaf)),))
    flow = telling.make_flow(graph, scope.items, NO_WAY_OUT)
    waiting: list[Row | _Spot] = [_Spot(flow, entry, (), (), 0) for entry in reversed(flow.entries())]
    while waiting:
        current = waiting.pop()
        if isinstance(current, Row):
            yield current
        else:
            waiting.extend(reversed(_Teller(telling, current, roots).tell()))


def body_of(scope: Scope, copy: int = 0) -> tuple[Item, ...]:
    """Return the items to tell inside a scope; a repeat of single module calls tells the insides of one call."""
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
    """An item that is next to be told, and the indentation of its own row and of the rows below it."""

    flow: Flow
    place: int
    guides: tuple[Guide, ...]
    guides_below: tuple[Guide, ...]
    level: int
    links: tuple[Link, ...] = ()


class _Teller:
    """Tells one item: its row, what is inside, its branches, and its trunk."""

    def __init__(self, telling: OutlineBuilder, spot: _Spot, roots: frozenset[int]) -> None:
        self.telling = telling
        self.graph = telling.graph
        self.roots = roots
        self.spot = spot
        self.item, self.call = unwrapped(spot.flow.items[spot.place])
        self.told = spot.flow.told_under(spot.place)
        self.places = {*self.told.branches, *self.told.trunks}
        self.is_open = isinstance(self.item, Scope) and telling.is_open(self.item, spot.level)

    def tell(self) -> list[Row | _Spot]:
        """Return the item's row, and the rows and items below it in order."""
        if isinstance(self.item, Scope):
            return self._tell_scope(self.item)
        chain, end = self._chain(self.item)
        if end is not None:
            return [self._row(kind="node", nodes=chain, way_on=(end,), ends_in_leaf=True, call=self.call)]
        return self._with_twigs(self.item, self._links(self.item))

    def _tell_scope(self, scope: Scope) -> list[Row | _Spot]:
        if not self.is_open:
            last = last_of_chain(scope)
            return self._with_twigs(scope, _distinct_targets(self.graph, scope) if last is None else self._links(last))
        copy = self.telling.copy_of(scope, self.spot.level) if scope.copies else None
        inside = self.telling.make_flow(self.graph, body_of(scope, copy or 0), self._way_out(scope, copy or 0))
        guides: tuple[Guide, ...] = (*self.spot.guides_below, "scope")
        below = [_Spot(inside, entry, guides, guides, self.spot.level + 1) for entry in inside.entries()]
        return [
            self._row(kind="scope", scope=scope, is_open=True, copy=copy),
            *below,
            *self._twigs({}),
            *self._trunks({}),
        ]

    def _with_twigs(self, item: Item, links: Sequence[Link]) -> list[Row | _Spot]:
        ends = [link for link in links if self._is_told_elsewhere(link)]
        is_end = not self.told.branches and not self.told.trunks
        inline = tuple(ends) if is_end and (len(ends) == 1 or isinstance(item, Scope)) else ()
        row = (
            self._row(kind="scope", scope=item, way_on=inline)
            if isinstance(item, Scope)
            else self._row(
                kind="node", nodes=(item,), way_on=inline, ends_in_leaf=self._has_leaf(inline), call=self.call
            )
        )
        rows = [] if inline or not ends else self._end_rows(item, ends)
        links_to = self._by_place(links)
        return [row, *self._twigs(links_to, rows), *self._trunks(links_to)]

    def _has_leaf(self, links: Sequence[Link]) -> bool:
        return any(self.graph.nodes[link.edge.next_node].kind == "accumulate_grad" for link in links)

    def _end_rows(self, item: Item, ends: list[Link]) -> list[Row]:
        if isinstance(item, Scope):
            return [Row(kind="reference", way_on=tuple(ends))]
        return [
            Row(kind="leaf" if self._has_leaf((link,)) else "reference", links=(link,), way_on=(link,)) for link in ends
        ]

    def _twigs(self, links: _LinksTo, rows: Sequence[Row] = ()) -> list[Row | _Spot]:
        """Return what is told to the side of the item: given rows first, then its branches."""
        spot = self.spot
        goes_on = bool(self._trunks(links))
        twigs: list[Row | int] = [*rows, *self.told.branches]
        told: list[Row | _Spot] = []
        for number, twig in enumerate(twigs, start=1):
            is_last = number == len(twigs) and not goes_on
            guides: tuple[Guide, ...] = (*spot.guides_below, "last_branch" if is_last else "branch")
            if isinstance(twig, Row):
                told.append(msgspec.structs.replace(twig, guides=guides))
            else:
                under: tuple[Guide, ...] = (*spot.guides_below, "gap" if is_last else "line")
                told.append(_Spot(spot.flow, twig, guides, under, spot.level, links.get(twig, ())))
        return told

    def _trunks(self, links: _LinksTo) -> list[Row | _Spot]:
        """Return what is told below the item, in its own column.

        The way out follows by itself, unless branches stand between: then a reference says where the item goes on.
        """
        spot, below = self.spot, self.spot.guides_below
        way_out = len(spot.flow.items)
        told: list[Row | _Spot] = [
            _Spot(spot.flow, trunk, below, below, spot.level, links.get(trunk, ()))
            for trunk in self.told.trunks
            if trunk != way_out
        ]
        out = links.get(way_out, ())
        stands_between = told or any(not spot.flow.is_view_of_leaf(branch) for branch in self.told.branches)
        if way_out in self.told.trunks and out and stands_between:
            told.append(Row(kind="reference", guides=below, links=out, way_on=out[:1]))
        return told

    def _by_place(self, links: Sequence[Link]) -> _LinksTo:
        """Group links by the place they lead to, as far as it is told under this item."""
        groups: dict[int, list[Link]] = {}
        for link in links:
            place = self.spot.flow.place_of(link.edge.next_node)
            if place is not None and place in self.places:
                groups.setdefault(place, []).append(link)
        return {place: tuple(group) for place, group in groups.items()}

    def _is_told_elsewhere(self, link: Link) -> bool:
        place = self.spot.flow.place_of(link.edge.next_node)
        return place is None or place not in self.places

    def _way_out(self, scope: Scope, copy: int) -> range:
        """Return the ids that are told right below the scope, or would be: those of the copies that are not told."""
        following = later_copies(scope, copy)
        if following:
            return following
        if self.told.branches or not self.told.trunks:
            return NO_WAY_OUT
        flow, trunk = self.spot.flow, self.told.trunks[0]
        return flow.way_out if trunk == len(flow.items) else node_ids(flow.items[trunk])

    def _links(self, node_id: int) -> list[Link]:
        node = self.graph.nodes[node_id]
        return [
            Link(argument=argument_name(self.graph, node, position), position=position, edge=edge)
            for position, edge in enumerate(node.next_edges)
            if edge is not None
        ]

    def _chain(self, node_id: int) -> tuple[tuple[int, ...], Link | None]:
        """Follow a node down to a leaf as long as nothing branches off and nothing but names is lost in one row."""
        flow = self.spot.flow
        chain, told = [node_id], self.told
        while True:
            links = self._links(chain[-1])
            if len(links) == 1 and self._has_leaf(links):
                return tuple(chain), links[0]
            if len(links) != 1 or not told.trunks or told.trunks[0] == len(flow.items):
                return (node_id,), None
            item = flow.items[told.trunks[0]]
            if not isinstance(item, int) or len(chain) == MAX_NODES_IN_A_ROW or not self._is_plain(item, node_id):
                return (node_id,), None
            chain.append(item)
            told = flow.told_under(told.trunks[0])

    def _is_plain(self, node_id: int, first: int) -> bool:
        node, before = self.graph.nodes[node_id], self.graph.nodes[first]
        has_marks = node.hooks or node.function or any(value.tensor or value.status for value in node.saved)
        return not has_marks and node.frame in (None, before.frame) and node_id not in self.roots

    def _row(self, **fields: object) -> Row:
        return Row(guides=self.spot.guides, links=self.spot.links, **fields)  # type: ignore[arg-type]


def unwrapped(item: Item) -> tuple[Item, int | None]:
    """Return the only node of a module call that has no other, with the call."""
    if isinstance(item, Scope) and item.kind == "module" and isinstance(item.items[0], int) and item.num_nodes == 1:
        return item.items[0], item.module
    return item, None


def _distinct_targets(graph: Graph, scope: Scope) -> list[Link]:
    """Return one link for each node outside a scope that its gradients go to."""
    targets = sorted({edge.next_node for edge in edges_out(graph, scope)})
    return [Link(edge=Edge(next_node=target)) for target in targets]
