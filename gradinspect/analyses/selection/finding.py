"""Find nodes by class, module, size or a condition, and describe each in one row.

What comes in: a `Graph` and criteria. What goes out: a row for each node that meets all of them.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec.structs import replace

from gradinspect.analyses.memory.saved_storages import held_bytes_by_node
from gradinspect.analyses.selection.node_conditions import fields_of_condition, nodes_where
from gradinspect.analyses.structure.name_folding import (
    OddOne,
    alike,
    name_of_all,
    named_odd_one,
    numbers_between,
    without_numbers,
)
from gradinspect.analyses.structure.node_names import hook_names, names_around
from gradinspect.graph import FoundNode, Graph, Node, SavedStatus, module_name, source_of
from gradinspect.units import format_tensor, name_matches, parse_bytes


class AlikeNodes(NamedTuple):
    """Nodes in the same place of equal blocks, as one row."""

    node: FoundNode  # the first; it holds what all hold, and its module stands for all
    times: int
    odd_one: OddOne | None = None  # the module whose node holds far more or less


def folded_nodes(rows: Sequence[FoundNode]) -> list[AlikeNodes]:
    """Return nodes that say the same but for sizes, in modules whose names differ in an index only, as one row each.

    Args:
        rows: By their bytes, or in any other order; so is what is returned.
    """
    is_by_bytes = all(first.held_bytes >= second.held_bytes for first, second in pairwise(rows))
    groups = alike(
        rows,
        lambda row: (row.module, row.leaf),
        lambda row: (row.name, row.line, tuple(map(without_numbers, row.outputs)), row.statuses, row.hooks),
    )
    folded = [AlikeNodes(_together(group), len(group), _odd_one(group)) for group in groups]
    return sorted(folded, key=lambda one: -one.node.held_bytes) if is_by_bytes else folded


def _odd_one(rows: Sequence[FoundNode]) -> OddOne | None:
    return named_odd_one([row.module or "" for row in rows], [row.held_bytes for row in rows])


def _together(rows: Sequence[FoundNode]) -> FoundNode:
    if len(rows) == 1:
        return rows[0]
    return replace(
        rows[0],
        module=name_of_all(row.module for row in rows),
        leaf=name_of_all(row.leaf for row in rows),
        outputs=tuple(map(numbers_between, zip(*(row.outputs for row in rows), strict=True))),
        held_bytes=sum(row.held_bytes for row in rows),
    )


def find_nodes(
    graph: Graph,
    name: str | None = None,
    *,
    module: str | None = None,
    min_bytes: int | str | None = None,
    where: str | None = None,
) -> tuple[FoundNode, ...]:
    """Find the nodes that meet all criteria, possibly none: in the order of their ids, or by bytes where they count.

    Args:
        graph: The graph.
        name: A class, also as a pattern: `AddmmBackward0`, `*Addmm*`.
        module: A module's path, also as a pattern: `h.*.attn`; with what is inside it.
        min_bytes: The least that it holds: bytes, or a text such as `1MiB`.
        where: A condition: `bytes>1MiB and module~h.* and status=modified`.

    Raises:
        GradInspectError: The size or the condition cannot be read.
    """
    chosen: list[Collection[int]] = []
    if name is not None:
        chosen.append({number for number, node in enumerate(graph.nodes) if name_matches(node.name, name)})
    if module is not None:
        chosen.append(set(_inside(graph, module)))
    if min_bytes is not None:
        least = parse_bytes(min_bytes) if isinstance(min_bytes, str) else min_bytes
        chosen.append({number for number, held in enumerate(held_bytes_by_node(graph)) if held >= least})
    if where is not None:
        chosen.append(nodes_where(graph, where))
    every = range(len(graph.nodes))
    found = found_nodes(graph, [number for number in every if all(number in part for part in chosen)])
    asks_for_bytes = min_bytes is not None or (where is not None and "bytes" in fields_of_condition(graph, where))
    return tuple(sorted(found, key=lambda row: -row.held_bytes)) if asks_for_bytes else found


def found_nodes(graph: Graph, node_ids: Sequence[int]) -> tuple[FoundNode, ...]:
    """Describe some nodes."""
    held = held_bytes_by_node(graph)
    return tuple(_describe(graph, number, held[number]) for number in node_ids)


def _describe(graph: Graph, number: int, held_bytes: int) -> FoundNode:
    node = graph.nodes[number]
    return FoundNode(
        id=number,
        name=node.name,
        module=None if node.module is None else module_name(graph, graph.modules[node.module].path),
        line=source_of(graph, node),
        held_bytes=held_bytes,
        outputs=tuple(format_tensor(info) for info in node.forward_outputs if info is not None),
        leaf=None if node.leaf is None else node.leaf.name,
        statuses=tuple(dict.fromkeys(_statuses(node))),
        hooks=hook_names(node),
    )


def _statuses(node: Node) -> Iterator[SavedStatus]:
    return (value.status for value in node.saved if value.status is not None)


def _inside(graph: Graph, pattern: str) -> Iterator[int]:
    """Yield the nodes made in modules that a pattern matches, as a whole path or its last parts."""
    fits = [
        any(name_matches(name, one) for name in names_around(graph, call.path) for one in (pattern, f"*.{pattern}"))
        for call in graph.modules
    ]
    return (number for number, node in enumerate(graph.nodes) if node.module is not None and fits[node.module])
