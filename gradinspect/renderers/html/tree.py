"""The boxes of the page, as a flat list of scopes.

What comes in: the folding of a graph. What goes out: a `PageScope` for each box that can be expanded, outer ones
first. No scope has too many items to look at: larger ones are split into runs.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from gradinspect.analyses.memory.odd_copies import OddCopies
from gradinspect.analyses.memory.saved_storages import held_bytes_by_node
from gradinspect.analyses.structure.copy_ranges import name_of_blocks
from gradinspect.analyses.structure.expansion import fits_unfolded
from gradinspect.analyses.structure.folding import Item, Scope, node_ids, place_of_call
from gradinspect.analyses.structure.shape_chains import chain_title
from gradinspect.analyses.structure.skips import SkipEdge, fork_ids, skip_edges
from gradinspect.graph import Graph, Record
from gradinspect.units import escape_control

PageScopeKind: TypeAlias = Literal["graph", "module", "repeat", "copy", "run", "shapes"]
MAX_ITEMS = 100  # shown side by side in one expanded scope
MAX_COPIES = 12  # of a repeat shown side by side; if there are more, the first and one box for the rest
NUM_NAMED = 2  # parts of a repeated body that its title names


class PageScope(Record, frozen=True, kw_only=True):
    """One box that can be expanded."""

    kind: PageScopeKind
    title: str
    items: tuple[int, ...]  # a node id, or minus the index of another scope
    first: int  # node ids, without AccumulateGrad
    last: int
    module: int | None = None
    times: int = 0  # copies in a repeat
    odd: str = ""  # the copy whose bytes are far from those of the others
    skips: tuple[SkipEdge, ...] = ()  # edges that go around its body: NOTE [Skips] in `structure.skips`


class _Group(NamedTuple):
    """A scope under construction, with its direct items."""

    kind: PageScopeKind
    title: str
    items: Sequence["Item | _Group"]
    module: int | None = None
    times: int = 0
    odd: str = ""


def page_scopes(graph: Graph, folded: Scope) -> tuple[list[PageScope], set[int]]:
    """List the scopes, the graph itself first, and the nodes that are the only node of a module call."""
    groups = [_Group("graph", graph.source, [*_root_leaves(graph), *folded.items])]
    odd_copies = OddCopies(graph, held_bytes_by_node(graph))
    scopes: list[PageScope] = []
    alone: set[int] = set()
    forks = fork_ids(graph)
    for group in groups:  # grows during iteration
        items: list[int] = []
        for item in _in_runs(list(_items(group.items, alone))):
            if isinstance(item, int):
                items.append(item)
            else:
                items.append(-len(groups))
                groups.append(item if isinstance(item, _Group) else _group(graph, item, odd_copies))
        ids = _ids(group.items, graph)
        scopes.append(
            PageScope(
                kind=group.kind, title=escape_control(group.title), items=tuple(items), first=ids.start,
                last=ids.stop - 1, module=group.module, times=group.times,
                odd=escape_control(group.odd),
                skips=tuple(sorted(skip_edges(graph, ids, forks))) if ids and scopes else (),
            )
        )  # fmt: skip
    return scopes, alone


def _root_leaves(graph: Graph) -> list[int]:
    """Return the roots that are in no box: leaves that backward was called on."""
    return sorted({root.node for root in graph.roots if graph.nodes[root.node].kind == "accumulate_grad"})


def _items(items: Iterable["Item | _Group"], alone: set[int]) -> Iterator["Item | _Group"]:
    """Unfold small repeats and calls of a single node."""
    waiting = list(reversed(list(items)))
    while waiting:
        item = waiting.pop()
        if isinstance(item, Scope) and fits_unfolded(item):
            waiting.extend(reversed([inner for copy in (item.items, *item.copies) for inner in copy]))
        elif isinstance(item, Scope) and item.kind == "module" and item.num_nodes == 1:
            alone.add(node_ids(item).start)
            yield node_ids(item).start
        else:
            yield item


def _in_runs(items: list["Item | _Group"]) -> Sequence["Item | _Group"]:
    """Group neighbors into runs until there are few enough."""
    width = 1
    while len(items) > width * MAX_ITEMS:
        width *= MAX_ITEMS
    if width == 1:
        return items
    return [_Group("run", "", items[start : start + width]) for start in range(0, len(items), width)]


def _group(graph: Graph, scope: Scope, odd_copies: OddCopies) -> _Group:
    if scope.kind == "repeat":
        return _repeat(graph, scope)._replace(odd=odd_copies.words(scope))
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
    return _Group("repeat", _title(graph, scope), shown, times=len(bodies))


def _title(graph: Graph, scope: Scope) -> str:
    """Name a repeat by its module calls, `h.0-11 Block`, or else by its first nodes."""
    calls = name_of_blocks(graph, scope)
    if calls:
        around = "with " if place_of_call(scope) is not None and len(scope.items) > 1 else ""
        return around + calls.replace("  ", " ")
    names = list(dict.fromkeys(graph.nodes[node_ids(item).start].name for item in scope.items))
    return ", ".join(names[:NUM_NAMED]) + (" …" if len(names) > NUM_NAMED else "")


def _ids(items: Sequence["Item | _Group"], graph: Graph) -> range:
    """Return the ids from the first to the last, without leaves that are roots."""
    inside = [item for item in items if not isinstance(item, int) or graph.nodes[item].kind != "accumulate_grad"]
    if not inside:
        return range(0)
    return range(_ends(inside[0]).start, _ends(inside[-1], last=True).stop)


def _ends(item: "Item | _Group", *, last: bool = False) -> range:
    while isinstance(item, _Group):
        item = item.items[-1 if last else 0]
    return node_ids(item)
