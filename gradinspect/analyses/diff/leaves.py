"""Which leaves a graph gained, lost, froze or renamed.

What comes in: two readings and their matching. What goes out: a `LeafChange` for each.
"""

from collections.abc import Iterator

from gradinspect.analyses.diff.matching import Matching, name_in_after
from gradinspect.analyses.diff.modules import paths_in_after
from gradinspect.analyses.diff.reading import Reading
from gradinspect.analyses.diff.records import LeafChange
from gradinspect.graph import Consumer, Graph, Leaf, consumers
from gradinspect.units import format_tensor

UNNAMED = "a leaf"


def leaf_changes(before: Reading, after: Reading, matching: Matching) -> tuple[LeafChange, ...]:
    """List what differs between the leaves, in the order of the forward pass."""
    inverse = {theirs: mine for mine, theirs in matching.nodes.items()}
    lost = [n for n in before.leaves if n not in matching.nodes]
    gained = [n for n in after.leaves if n not in inverse]
    frozen = _frozen_leaves(before.graph, after.graph, matching.nodes, lost)
    unfrozen = _frozen_leaves(after.graph, before.graph, inverse, gained)
    return (
        *(_change("frozen" if n in frozen else "lost", before.graph, n) for n in lost),
        *(_change("unfrozen" if n in unfrozen else "gained", after.graph, n) for n in gained),
        *_changed(before, after, matching),
    )


def _change(kind: str, graph: Graph, node_id: int) -> LeafChange:
    leaf = graph.nodes[node_id].leaf
    name = UNNAMED if leaf is None or leaf.name is None else leaf.name
    return LeafChange(kind=kind, name=name, info=None if leaf is None else leaf.info)  # type: ignore[arg-type]


def _changed(before: Reading, after: Reading, matching: Matching) -> Iterator[LeafChange]:
    paths = paths_in_after(before, after, matching.calls)
    for node_id in before.leaves:
        if node_id not in matching.nodes:
            continue
        leaf, other = before.graph.nodes[node_id].leaf, after.graph.nodes[matching.nodes[node_id]].leaf
        if leaf is None or other is None:
            continue
        name = other.name or UNNAMED
        expected = None if leaf.name is None else name_in_after(leaf.name, paths)
        if expected != other.name:
            yield LeafChange(kind="renamed", name=name, before=leaf.name or UNNAMED, after=name, info=other.info)
        if leaf.info != other.info:
            tensors = format_tensor(leaf.info), format_tensor(other.info)
            yield LeafChange(kind="changed", name=name, before=tensors[0], after=tensors[1], info=other.info)
        if {name_in_after(alias, paths) for alias in leaf.aliases} != set(other.aliases):
            yield LeafChange(kind="changed", name=name, before=_aliases(leaf), after=_aliases(other), info=other.info)


def _aliases(leaf: Leaf) -> str:
    return f"also {', '.join(leaf.aliases)}" if leaf.aliases else "no other name"


def _frozen_leaves(graph: Graph, other: Graph, matched: dict[int, int], missing: list[int]) -> set[int]:
    """Find leaves that are frozen in the other graph, not detached there together with others.

    From the leaf towards the root, through nodes that only this graph has and that lead to no other leaf, every path
    ends at a node that is in both graphs, and has None at this position in the other one.
    """
    uses = consumers(graph) if missing else {}
    return {leaf for leaf in missing if _is_frozen(graph, other, matched, uses, leaf)}


def _is_frozen(graph: Graph, other: Graph, matched: dict[int, int], uses: dict[int, list[Consumer]], leaf: int) -> bool:
    waiting, num_cuts = [leaf], 0
    while waiting:
        node_id = waiting.pop()
        for use in uses.get(node_id, ()):
            partner = matched.get(use.node)
            if partner is not None:
                edges = other.nodes[partner].next_edges
                if use.position >= len(edges) or edges[use.position] is not None:
                    return False
                num_cuts += 1
            elif sum(edge is not None for edge in graph.nodes[use.node].next_edges) == 1:
                waiting.append(use.node)
            else:
                return False
    return num_cuts > 0
