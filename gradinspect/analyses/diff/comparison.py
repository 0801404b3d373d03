"""Compare two graphs: the entry to this package."""

from collections import Counter

from msgspec.structs import replace

from gradinspect.analyses.diff.changes import changed_nodes
from gradinspect.analyses.diff.devices import without_devices
from gradinspect.analyses.diff.folding import fold_changed, fold_missing
from gradinspect.analyses.diff.leaves import leaf_changes
from gradinspect.analyses.diff.matching import Matching, match_readings
from gradinspect.analyses.diff.modules import module_changes
from gradinspect.analyses.diff.reading import Numbering, Reading, forward_order
from gradinspect.analyses.diff.records import Aspect, GraphDiff, Pair
from gradinspect.analyses.diff.values import DEFAULT_TOLERANCE, Tolerance, diff_values
from gradinspect.analyses.summary import summarize
from gradinspect.graph import Graph


def diff_graphs(
    before: Graph, after: Graph, ignored: frozenset[Aspect] = frozenset(), tolerance: Tolerance = DEFAULT_TOLERANCE
) -> GraphDiff:
    """Find what differs between two graphs.

    Args:
        before: A.
        after: B.
        ignored: What does not count as a difference.
        tolerance: By how much values may differ.
    """
    if "device" in ignored:
        before, after = without_devices(before), without_devices(after)
    compares_values = "values" not in ignored and before.values and after.values
    if _are_equal(before, after):
        totals = _totals(before, after, are_equal=True)
        if not compares_values:
            return totals
        same = {node_id: node_id for node_id in range(len(before.nodes))}
        return replace(totals, values=diff_values(before, after, same, forward_order(after), tolerance))
    totals = _totals(before, after, are_equal=False)
    numbers = Numbering()
    readings = Reading(before, numbers), Reading(after, numbers)
    matching = match_readings(*readings)
    found = _with_changes(totals, *readings, matching, ignored)
    if not compares_values:
        return found
    return replace(found, values=diff_values(before, after, matching.nodes, readings[1].order, tolerance))


def _are_equal(before: Graph, after: Graph) -> bool:
    """Return whether the graphs are equal in every record, so that nothing need be matched."""
    return (
        before.nodes == after.nodes
        and before.roots == after.roots
        and before.storages == after.storages
        and before.modules == after.modules
        and before.frames == after.frames
    )


def match_graphs(before: Graph, after: Graph) -> Matching:
    """Find which node and module call of one graph is which one of the other."""
    numbers = Numbering()
    return match_readings(Reading(before, numbers), Reading(after, numbers))


def have_common_modules(before: Graph, after: Graph) -> bool:
    """Return whether two graphs may be of the same model: by a module's path and class, or by a part's content."""
    if not (_named(before) and _named(after)) or _named(before) & _named(after):
        return True
    numbers = Numbering()
    contents = [{call.content for call in Reading(graph, numbers).calls if call.nodes} for graph in (before, after)]
    return bool(contents[0] & contents[1])


def _named(graph: Graph) -> set[tuple[str, str]]:
    """Return the paths and classes of the modules inside of the outermost."""
    return {(call.path, call.class_name) for call in graph.modules if call.path}


def _totals(before: Graph, after: Graph, *, are_equal: bool) -> GraphDiff:
    mine = _figures(before)
    theirs = mine if are_equal else _figures(after)
    pairs = (Pair(figure, other) for figure, other in zip(mine, theirs, strict=True))
    nodes, edges, leaves, held, weights = pairs
    versions = (before.torch_version, after.torch_version)
    return GraphDiff(
        nodes=nodes, edges=edges, leaves=leaves, held_bytes=held, weight_bytes=weights, torch_versions=versions,
        model_names=(before.model_name, after.model_name),
        classes=_classes(before, after),
    )  # fmt: skip


def _classes(before: Graph, after: Graph) -> dict[str, Pair]:
    """Count the nodes of each class, and keep those whose numbers differ."""
    mine, theirs = (Counter(node.name for node in graph.nodes) for graph in (before, after))
    pairs = {name: Pair(mine[name], theirs[name]) for name in (mine | theirs) if mine[name] != theirs[name]}
    return dict(sorted(pairs.items(), key=lambda item: (-abs(item[1].change), item[0])))


def _figures(graph: Graph) -> tuple[int, ...]:
    """Count nodes, edges, leaves, bytes held, and bytes of weights."""
    found = summarize(graph)
    return found.nodes, found.edges, found.leaves, found.held_bytes, found.weight_bytes


def _with_changes(
    totals: GraphDiff, before: Reading, after: Reading, matching: Matching, ignored: frozenset[Aspect]
) -> GraphDiff:
    taken = set(matching.nodes.values())
    removed = [n for n in before.order if n not in matching.nodes and before.graph.nodes[n].kind != "accumulate_grad"]
    added = [n for n in after.order if n not in taken and after.graph.nodes[n].kind != "accumulate_grad"]
    changed = changed_nodes(before, after, matching, ignored)
    lost_calls = set(range(len(before.calls))) - set(matching.calls)
    new_calls = set(range(len(after.calls))) - set(matching.calls.values())
    rows = (
        *fold_missing(before, removed, "removed", lost_calls=lost_calls),
        *fold_missing(after, added, "added", lost_calls=new_calls),
        *fold_changed(before, after, changed),
    )
    modules = () if "order" in ignored else tuple(module_changes(before, after, matching.calls))
    return GraphDiff(
        **{
            name: getattr(totals, name)
            for name in ("nodes", "edges", "leaves", "held_bytes", "weight_bytes", "classes")
        },
        torch_versions=totals.torch_versions,
        model_names=totals.model_names,
        added=tuple(added),
        removed=tuple(removed),
        changed=changed,
        rows=rows,
        leaf_changes=leaf_changes(before, after, matching),
        module_changes=modules,
        is_held_changed="bytes" not in ignored and totals.held_bytes.change != 0,
    )
