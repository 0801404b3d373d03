"""The figures at the top of every report."""

import re
from collections import Counter
from typing import get_args

from gradinspect.analyses.memory.saved_storages import IN_MEMORY_ANYWAY, origins_of_saved
from gradinspect.graph import CapturePoint, Graph, Origin, Record
from gradinspect.units import call_name, format_count

NOT_LOOKED_AT = re.compile(r"[\d,]+ calls? inside a CUDA graph capture (was|were) not looked at\.")


class Summary(Record, frozen=True, kw_only=True):
    """How large a graph is, and what it keeps alive."""

    nodes: int
    edges: int  # every entry of next_edges, including None
    none_edges: int
    roots: int
    leaves: int
    max_depth: int  # nodes on the longest path
    classes: dict[str, int]  # most frequent first, then by name
    held_bytes: int  # NOTE [Bytes held] in `saved_storages`
    weight_bytes: int  # of saved parameters and buffers, in memory anyway
    saved_bytes_by_origin: dict[Origin, int]  # adds up to both; has every origin, even at 0
    captured_at: str  # "backward #1  train.py:41  loss.backward()"
    other_calls: str = ""  # "3 autograd.grad calls before it"
    warnings: tuple[str, ...] = ()


def summarize(graph: Graph) -> Summary:
    """Count what is in a graph, in one loop over the nodes: a million take about a second."""
    edges, none_edges, max_depth = _measure_edges(graph)
    classes = Counter(node.name for node in graph.nodes)
    by_origin = _saved_bytes_by_origin(graph)
    weights = sum(by_origin[origin] for origin in IN_MEMORY_ANYWAY)
    return Summary(
        nodes=len(graph.nodes),
        edges=edges,
        none_edges=none_edges,
        roots=len(graph.roots),
        leaves=sum(node.kind == "accumulate_grad" for node in graph.nodes),
        max_depth=max_depth,
        classes=dict(sorted(classes.items(), key=lambda entry: (-entry[1], entry[0]))),
        held_bytes=sum(by_origin.values()) - weights,
        weight_bytes=weights,
        saved_bytes_by_origin=by_origin,
        captured_at=describe_capture(graph),
        other_calls=describe_other_calls(graph),
        warnings=graph.warnings,
    )


def describe_edges(figures: Summary) -> str:
    """Count the edges: `162 edges (21 None)`."""
    nones = f" ({figures.none_edges:,} None)" if figures.none_edges else ""
    return format_count(figures.edges, "edge") + nones


def _measure_edges(graph: Graph) -> tuple[int, int, int]:
    """Count edges and None edges, and find the longest path in one pass: NOTE [Topological ids]."""
    edges = none_edges = 0
    depths = [1] * len(graph.nodes)
    for node_id, node in enumerate(graph.nodes):
        next_depth = depths[node_id] + 1
        edges += len(node.next_edges)
        for edge in node.next_edges:
            if edge is None:
                none_edges += 1
            elif depths[edge.next_node] < next_depth:
                depths[edge.next_node] = next_depth
    return edges, none_edges, max(depths, default=0)


def _saved_bytes_by_origin(graph: Graph) -> dict[Origin, int]:
    totals: dict[Origin, int] = dict.fromkeys(get_args(Origin), 0)
    for storage, origin in origins_of_saved(graph).items():
        totals[origin] += graph.storages[storage].num_bytes
    return totals


def describe_capture(graph: Graph) -> str:
    """Say where the graph was recorded: `backward #1  train.py:41  loss.backward()`."""
    point = graph.captured_at
    made = "the graph built by " if point.is_second_order else ""
    parts = [f"{made}{_moment(point, graph.source)}"]
    if point.frame is not None:
        frame = graph.frames[point.frame]
        parts += [f"{frame.file}:{frame.line}", frame.code]
    return "  ".join(filter(None, parts))


def passed_over(graph: Graph) -> tuple[str, ...]:
    """Say in a sentence which earlier calls were not looked at, since kernels were captured there."""
    return tuple(warning for warning in graph.warnings if NOT_LOOKED_AT.fullmatch(warning))


def describe_other_calls(graph: Graph) -> str:
    """Say which other autograd.grad() calls could be shown; "" if there are none."""
    point = graph.captured_at
    if not point.other_grads:
        return ""
    where = "more, and no backward call" if point.kind == "grad" else "before it"
    return f"{format_count(point.other_grads, 'autograd.grad call')} {where}"


def _moment(point: CapturePoint, source: str) -> str:
    match point.kind:
        case "backward" | "grad":
            return call_name(point.kind, point.number)
        case "end" | "call":
            return f"{point.kind} of {source}"
