"""Group the nodes of a graph into module calls and repeated blocks, so that a large graph has few items.

What comes in: a `Graph`. What goes out: a tree of `Scope`s with every node except AccumulateGrad exactly once. The
terminal tree, the pictures and the page share it; each decides which scopes to expand.

Contracting any scope keeps the graph acyclic: a scope covers a contiguous range of ids, and ids are in topological
order (NOTE [Topological ids]). A call whose nodes are not contiguous gets several scopes.
"""

from collections.abc import Hashable, Sequence
from itertools import accumulate
from typing import Any, Literal, TypeAlias

from gradinspect.analyses.memory.saved_storages import held_bytes_by_node
from gradinspect.analyses.structure.repeats import Looks, Repeat, Wiring, find_repeats, read_wiring
from gradinspect.analyses.structure.shape_chains import chain_links
from gradinspect.graph import Graph, Record

ScopeKind: TypeAlias = Literal["graph", "module", "repeat", "shapes"]


class Scope(Record, frozen=True, kw_only=True):
    """Part of the graph: all of it, a module call, a repeated block, a chain of views. Items are in id order."""

    kind: ScopeKind
    items: tuple["Item", ...]
    module: int | None = None  # index into Graph.modules, if kind is "module"
    copies: tuple[tuple["Item", ...], ...] = ()  # the 2nd, 3rd, ... copy, aligned with `items`, if kind is "repeat"
    num_nodes: int  # with copies, without AccumulateGrad
    held_bytes: int  # with copies: NOTE [Bytes held] in `saved_storages`


Item: TypeAlias = int | Scope  # a node id, or part of the graph


def fold_graph(graph: Graph, *, repeats: bool = True, shapes: bool = False) -> Scope:
    """Nest the nodes by module call and fold repeated blocks.

    Args:
        graph: The graph.
        repeats: Whether to fold repeats; module calls are always nested.
        shapes: Whether to fold chains of shape-only nodes.
    """
    folder = _Folder(graph, repeats=repeats, links=chain_links(graph) if shapes else frozenset())
    chains = _module_chains(graph)
    for node_id in folder.wiring.positions:
        folder.add(node_id, chains[graph.nodes[node_id].module])
    return folder.finish()


def node_ids(item: Item) -> range:
    """Return the contiguous range of ids that an item covers, including copies."""
    first = last = item
    while isinstance(first, Scope):
        first = first.items[0]
    while isinstance(last, Scope):
        last = (last.copies[-1] if last.copies else last.items)[-1]
    return range(first, last + 1)


def later_copies(scope: Scope, copy: int = 0) -> range:
    """Return the ids of all copies of a repeat after one of them; the first copy is number 0."""
    following = scope.copies[copy:]
    return range(node_ids(following[0][0]).start, node_ids(scope).stop) if following else range(0)


def ids_of_copy(scope: Scope, copy: int) -> range:
    """Return the ids that one copy of a repeat covers."""
    body = (scope.items, *scope.copies)[copy]
    return range(node_ids(body[0]).start, node_ids(body[-1]).stop)


def place_of_call(scope: Scope) -> int | None:
    """Return which item of a repeat is its only module call, whose name tells copies apart; None without just one."""
    calls = [place for place, item in enumerate(scope.items) if isinstance(item, Scope) and item.kind == "module"]
    return calls[0] if scope.kind == "repeat" and len(calls) == 1 else None


def _module_chains(graph: Graph) -> dict[int | None, tuple[int, ...]]:
    """Return for each module call its enclosing calls, outermost first, itself last."""
    chains: dict[int | None, tuple[int, ...]] = {None: ()}
    for module in range(len(graph.modules)):
        chain: list[int] = []
        call: int | None = module
        while call is not None:
            chain.append(call)
            call = graph.modules[call].parent
        chains[module] = tuple(reversed(chain))
    return chains


class _OpenScope:
    """A scope under construction: what each item looks like, and where it starts. See `repeats.find_repeats`."""

    def __init__(self, module: int | None) -> None:
        self.module = module
        self.items: list[Item] = []
        self.looks: list[Looks] = []
        self.starts: list[int] = []

    def add(self, item: Item, looks: Looks, start: int) -> None:
        self.items.append(item)
        self.looks.append(looks)
        self.starts.append(start)

    def repeats(self, stop: int, wiring: Wiring) -> list[Repeat]:
        """Find repeats of one size or, if there are none, blocks of modules of several: NOTE [Sizes of copies]."""
        looks, starts = self.looks, [*self.starts, stop]
        structure, begins = ([look[place] for look in looks] for place in (0, 1))
        found = find_repeats(structure, begins, starts, wiring)
        if found or sum(map(_is_block, self.items)) <= 1:
            return found
        for place, (item, look) in enumerate(zip(self.items, looks, strict=True)):
            if _is_block(item):
                structure[place], begins[place] = look.unsized, look.unsized_begins
        return find_repeats(structure, begins, starts, wiring)


def _is_block(item: Item) -> bool:
    """Return whether an item is a module call with other calls inside."""
    return isinstance(item, Scope) and item.kind == "module" and any(map(_has_call, item.items))


def _has_call(item: Item) -> bool:
    return isinstance(item, Scope) and (item.kind == "module" or any(map(_has_call, item.items)))


class _Folder:
    """Receives the nodes in id order; closes a scope and folds its repeats at the first node outside it."""

    def __init__(self, graph: Graph, *, repeats: bool, links: frozenset[int]) -> None:
        self.graph = graph
        self.repeats = repeats
        self.links = links
        self.numbers: dict[Hashable, int] = {}
        self.wiring: Wiring = read_wiring(graph, self.numbers)
        held = held_bytes_by_node(graph)
        self.held_before = list(accumulate((held[node_id] for node_id in self.wiring.positions), initial=0))
        self.position = 0
        self.open = [_OpenScope(None)]

    def add(self, node_id: int, chain: tuple[int, ...]) -> None:
        if self.open[-1].module != (chain[-1] if chain else None):
            self._enter(chain)
        place = self.position
        self.open[-1].add(node_id, self.wiring.looks[place], place)
        self.position += 1

    def finish(self) -> Scope:
        self._enter(())
        items = self._close_items(self.open[0])
        return Scope(kind="graph", items=items, num_nodes=self.position, held_bytes=self.held_before[-1])

    def _enter(self, chain: tuple[int, ...]) -> None:
        shared = 0
        for scope, module in zip(self.open[1:], chain, strict=False):
            if scope.module != module:
                break
            shared += 1
        while len(self.open) > shared + 1:
            self._close_module()
        self.open.extend(_OpenScope(module) for module in chain[shared:])

    def _close_module(self) -> None:
        scope = self.open.pop()
        if not scope.items or scope.module is None:
            return
        start = scope.starts[0]
        items = self._close_items(scope)
        looks = self._looks("module", scope.looks, self.graph.modules[scope.module].class_name)
        self.open[-1].add(
            Scope(
                kind="module",
                module=scope.module,
                items=items,
                num_nodes=self.position - start,
                held_bytes=self.held_before[self.position] - self.held_before[start],
            ),
            looks,
            start,
        )

    def _close_items(self, scope: _OpenScope) -> tuple[Item, ...]:
        stop = self.position
        self._fold_chains(scope, stop)
        while self.repeats:
            found = scope.repeats(stop, self.wiring)
            if not found:
                break
            for repeat in reversed(found):
                self._fold(scope, repeat, stop)
        return tuple(scope.items)

    def _fold_chains(self, scope: _OpenScope, stop: int) -> None:
        """Fold each node with the chain that follows it, last chain first, so that earlier indices stay valid."""
        last = len(scope.items)
        for place in range(len(scope.items) - 1, -1, -1):
            if scope.items[place] in self.links and self._follows(scope, place):
                continue
            if last - place > 1:
                self._fold_chain(scope, place, last, stop)
            last = place

    def _follows(self, scope: _OpenScope, place: int) -> bool:
        item = scope.items[place]
        return place > 0 and isinstance(item, int) and scope.items[place - 1] == item - 1

    def _fold_chain(self, scope: _OpenScope, first: int, last: int, stop: int) -> None:
        looks = self._looks("shapes", scope.looks[first:last])
        self._put(scope, range(first, last), stop, looks, kind="shapes", items=tuple(scope.items[first:last]))

    def _fold(self, scope: _OpenScope, repeat: Repeat, stop: int) -> None:
        first, period, count = repeat
        last = first + period * count
        bodies = [tuple(scope.items[at : at + period]) for at in range(first, last, period)]
        looks = self._looks("repeat", scope.looks[first : first + period], count)
        if scope.looks[last - period : last] != scope.looks[last - 2 * period : last - period]:  # not of one size
            looks = looks._replace(structure=self._looks("repeat", scope.looks[first:last], count).structure)
        self._put(scope, range(first, last), stop, looks, kind="repeat", items=bodies[0], copies=tuple(bodies[1:]))

    def _looks(self, kind: ScopeKind, inside: Sequence[Looks], *rest: Hashable) -> Looks:
        """Number what some items look like together."""
        return Looks(*(self._number((kind, *rest, *numbers)) for numbers in zip(*inside, strict=True)))

    def _number(self, structure: Hashable) -> int:
        return self.numbers.setdefault(structure, len(self.numbers))

    def _put(
        self,
        scope: _OpenScope,
        places: range,
        stop: int,
        looks: Looks,
        **fields: Any,  # noqa: ANN401
    ) -> None:
        """Replace some items by one scope."""
        first, last = places.start, places.stop
        begin = scope.starts[first]
        end = scope.starts[last] if last < len(scope.starts) else stop
        held_bytes = self.held_before[end] - self.held_before[begin]
        scope.items[first:last] = [Scope(num_nodes=end - begin, held_bytes=held_bytes, **fields)]
        scope.looks[first:last] = [looks]
        scope.starts[first:last] = [begin]
