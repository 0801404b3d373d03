"""Choose nodes by a condition and by module."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from gradinspect.analyses.memory.saved_storages import held_bytes_by_node
from gradinspect.analyses.selection.conditions import (
    Comparison,
    Value,
    comparisons_in,
    fields_in,
    holds,
    parse_condition,
)
from gradinspect.analyses.selection.name_patterns import closest_names, matching_names
from gradinspect.analyses.selection.rows import Fields
from gradinspect.analyses.structure.node_names import names_around, names_of_leaf
from gradinspect.graph import Graph, Node, module_name, source_of
from gradinspect.units import brief, format_bytes, format_tensor

T = TypeVar("T")


def nodes_where(graph: Graph, condition: str) -> frozenset[int]:
    """Return the nodes for which a condition holds, possibly none.

    Raises:
        GradInspectError: The condition cannot be read, or no node has such a field.
    """
    readers = node_fields(graph)
    parsed = parse_condition(condition, readers)
    return frozenset(
        node_id
        for node_id in range(len(graph.nodes))
        if holds(parsed, lambda field, node_id=node_id: readers[field](node_id))  # type: ignore[misc]  # mypy cannot infer
    )


def fields_of_condition(graph: Graph, condition: str) -> frozenset[str]:
    """Return the fields that a condition on nodes compares.

    Raises:
        GradInspectError: As in `nodes_where`.
    """
    return fields_in(parse_condition(condition, node_fields(graph)))


def near_misses(graph: Graph, condition: str) -> Iterator[str]:
    """Say of each comparison that no node meets what there is instead; if each is met, that all together are not."""
    readers, node_ids = node_fields(graph), range(len(graph.nodes))
    is_any = False
    for asked in comparisons_in(parse_condition(condition, readers)):
        several = [readers[asked.field](node_id) for node_id in node_ids]
        if not any(holds(asked, lambda _, values=values: values) for values in several):  # type: ignore[misc]  # as above
            is_any = True
            yield _near_miss(asked, [value for values in several for value in values if value is not None])
    if not is_any:
        yield "Some nodes meet each part of the condition, but none meets all of it."


def _near_miss(asked: Comparison, values: Sequence[str | float]) -> str:
    said = f"No node has {asked.field}{asked.comparator}{brief(asked.text)}."
    numbers = [value for value in values if not isinstance(value, str)]
    if numbers:
        write = format_bytes if asked.field == "bytes" else "{:,}".format
        return f"{said} The least is {write(int(min(numbers)))}, the most {write(int(max(numbers)))}."
    return f"{said} {closest_names(asked.text, {str(value) for value in values}, asked.field)}"


def nodes_in_module(graph: Graph, pattern: str) -> frozenset[int]:
    """Return the nodes made in modules whose path, or a parent's path, matches a pattern like `h.*.attn`.

    Raises:
        GradInspectError: No module matches; the hint lists the closest names.
    """
    around = [frozenset(names_around(graph, call.path)) for call in graph.modules]
    found = matching_names(pattern, {path for paths in around for path in paths}, "module")
    return frozenset(
        node_id
        for node_id, node in enumerate(graph.nodes)
        if node.module is not None and not found.isdisjoint(around[node.module])
    )


def chosen_nodes(graph: Graph, module: str | None, where: str | None) -> frozenset[int] | None:
    """Return the nodes that both options choose; None if neither is given."""
    chosen = [] if module is None else [nodes_in_module(graph, module)]
    chosen += [] if where is None else [nodes_where(graph, where)]
    return frozenset.intersection(*chosen) if chosen else None


def fields_of_nodes(graph: Graph, node_of: Callable[[T], int]) -> Fields[T]:
    """Return the fields of rows that are about one node each."""
    return {name: _through(read, node_of) for name, read in node_fields(graph).items()}


def _through(read: Callable[[int], Sequence[Value]], node_of: Callable[[T], int]) -> Callable[[T], Sequence[Value]]:
    return lambda row: read(node_of(row))


def node_fields(graph: Graph) -> Fields[int]:
    """Return what a node can be chosen by."""
    nodes, held = graph.nodes, held_bytes_by_node(graph)
    return {
        "bytes": lambda node_id: (held[node_id],),
        "class": lambda node_id: (nodes[node_id].name,),
        "dtype": lambda node_id: [info.dtype for info in nodes[node_id].forward_outputs if info is not None],
        "flops": lambda node_id: _flops(nodes[node_id]),
        "hooks": lambda node_id: (len(nodes[node_id].hooks),),
        "line": lambda node_id: (source_of(graph, nodes[node_id]),),
        "module": lambda node_id: (_module(graph, node_id),),
        "name": lambda node_id: _names(graph, node_id),
        "shape": lambda node_id: [format_tensor(info) for info in nodes[node_id].forward_outputs if info is not None],
        "status": lambda node_id: [value.status for value in nodes[node_id].saved if value.status is not None],
    }


def _module(graph: Graph, node_id: int) -> str | None:
    call = graph.nodes[node_id].module
    return None if call is None else module_name(graph, graph.modules[call].path)


def _flops(node: Node) -> tuple[int, ...]:
    counts = (node.flops, node.backward_flops)
    return () if counts == (None, None) else (sum(count or 0 for count in counts),)


def _names(graph: Graph, node_id: int) -> list[str | None]:
    node = graph.nodes[node_id]
    leaf = names_of_leaf(graph, node.leaf) if node.leaf is not None else ()
    return [*leaf, *(value.origin_name for value in node.saved if value.origin_name is not None)]
