"""The boxes of the page: what opens into what, as a flat list of scopes.

What comes in: the folding of a graph. What goes out: a `PageScope` for each box that can be opened, each before those
inside it. A scope has few enough items to be looked at: what has more is parted into runs.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from gradinspect.analyses.structure.folding import Item, Scope, node_ids
from gradinspect.analyses.structure.shape_chains import chain_title
from gradinspect.graph import Graph, Record
from gradinspect.renderers.picture.plan.parts import MAX_NODES_UNFOLDED
from gradinspect.units import escape_control

PageScopeKind: TypeAlias = Literal["graph", "module", "repeat", "copy", "run", "shapes"]
MAX_ITEMS = 100  # shown side by side in one open scope
MAX_COPIES = 12  # of a repeat that are shown side by side; of more, the first and a box for the others
NUM_NAMED = 2  # parts of a repeated body that its title names


class PageScope(Record, frozen=True, kw_only=True):
    """One box that can be opened."""

    kind: PageScopeKind
    title: str
    items: tuple[int, ...]  # a node id, or minus the place of another scope
    first: int  # node ids, AccumulateGrad not among them
    last: int
    module: int | None = None
    times: int = 0  # copies in a repeat


class _Group(NamedTuple):
    """A scope to be, with what is directly in it."""

    kind: PageScopeKind
    title: str
    items: Sequence["Item | _Group"]
    module: int | None = None
    times: int = 0


def page_scopes(graph: Graph, folded: Scope) -> tuple[list[PageScope], set[int]]:
    """List the scopes, the graph itself first, and the nodes that are all of a module call."""
    groups = [_Group("graph", graph.source, [*_root_leaves(graph), *folded.items])]
    scopes: list[PageScope] = []
    alone: set[int] = set()
    for group in groups:  # grows while it is read
        items: list[int] = []
        for item in _parted(list(_items(group.items, alone))):
            if isinstance(item, int):
                items.append(item)
            else:
                items.append(-len(groups))
                groups.append(item if isinstance(item, _Group) else _group(graph, item))
        ids = _ids(group.items, graph)
        scopes.append(
            PageScope(
                kind=group.kind, title=escape_control(group.title), items=tuple(items), first=ids.start,
                last=ids.stop - 1, module=group.module, times=group.times,
            )
        )  # fmt: skip
    return scopes, alone


def _root_leaves(graph: Graph) -> list[int]:
    """Return the roots that no box holds: a leaf that backward was called on."""
    return sorted({root.node for root in graph.roots if graph.nodes[root.node].kind == "accumulate_grad"})


def _items(items: Iterable["Item | _Group"], alone: set[int]) -> Iterator["Item | _Group"]:
    """Replace what is easier to read unfolded: a small repeat, and a call that is one node."""
    waiting = list(reversed(list(items)))
    while waiting:
        item = waiting.pop()
        if isinstance(item, Scope) and item.copies and item.num_nodes <= MAX_NODES_UNFOLDED:
            waiting.extend(reversed([inner for copy in (item.items, *item.copies) for inner in copy]))
        elif isinstance(item, Scope) and item.kind == "module" and item.num_nodes == 1:
            alone.add(node_ids(item).start)
            yield node_ids(item).start
        else:
            yield item


def _parted(items: list["Item | _Group"]) -> Sequence["Item | _Group"]:
    """Put neighbours into runs until there are few enough."""
    width = 1
    while len(items) > width * MAX_ITEMS:
        width *= MAX_ITEMS
    if width == 1:
        return items
    return [_Group("run", "", items[start : start + width]) for start in range(0, len(items), width)]


def _group(graph: Graph, scope: Scope) -> _Group:
    if scope.kind == "repeat":
        return _repeat(graph, scope)
    if scope.kind == "shapes":
        return _Group("shapes", chain_title([graph.nodes[node_id] for node_id in node_ids(scope)]), scope.items)
    call = graph.modules[scope.module or 0]
    return _Group("module", call.path or call.class_name, scope.items, scope.module)


def _repeat(graph: Graph, scope: Scope) -> _Group:
    bodies = [scope.items, *scope.copies]
    copies = [
        body[0] if len(body) == 1 else _Group("copy", f"{number:,} of {len(bodies):,}", body)
        for number, body in enumerate(bodies, start=1)
    ]
    shown: Sequence[Item | _Group] = copies
    if len(copies) > MAX_COPIES:
        shown = [copies[0], _Group("run", f"copies 2 to {len(copies):,}", copies[1:], times=len(copies) - 1)]
    return _Group("repeat", _body_title(graph, scope.items), shown, times=len(bodies))


def _body_title(graph: Graph, body: Sequence[Item]) -> str:
    """Name the parts of a body: modules by class where it has any, else nodes."""
    modules = [
        graph.modules[item.module].class_name
        for item in body
        if isinstance(item, Scope) and item.kind == "module" and item.module is not None
    ]
    names = list(dict.fromkeys(modules or [graph.nodes[node_ids(item).start].name for item in body]))
    more = len(names) > NUM_NAMED
    return ", ".join(names[:NUM_NAMED]) + (" …" if more else "")


def _ids(items: Sequence["Item | _Group"], graph: Graph) -> range:
    """Return the ids from the first to the last; leaves that are roots stand outside it."""
    inside = [item for item in items if not isinstance(item, int) or graph.nodes[item].kind != "accumulate_grad"]
    if not inside:
        return range(0)
    return range(_ends(inside[0]).start, _ends(inside[-1], last=True).stop)


def _ends(item: "Item | _Group", *, last: bool = False) -> range:
    while isinstance(item, _Group):
        item = item.items[-1 if last else 0]
    return node_ids(item)
